/**
 * Resources: the answer of each operation with `@resource`, as JSON. A server tells of its changes to who has subscribed
 * to it; the rest is read again after a while.
 */
import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
} from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import { pathNames } from '../compile/names.ts';
import type { Operation } from '../compile/operation.ts';
import { type Caller, type ContextOf, permit, runner } from '../compile/run.ts';
import type { AnswerError } from '../http/errors.ts';
import type { McpCaller } from './caller.ts';
import type { ToolOptions } from './tools.ts';

const JSON_TYPE = 'application/json';
const PUBLIC = { ttlMs: 60_000, cacheScope: 'public' as const };

export class Resources {
  readonly list: { resources: Resource[] };
  readonly templates: { resourceTemplates: ResourceTemplateType[] };
  readonly #readers: Reader[];
  readonly #answerError: AnswerError;

  constructor({ operations, contextOf, answerError }: Pick<ToolOptions, 'operations' | 'contextOf' | 'answerError'>) {
    this.#answerError = answerError;
    const all = operations.filter(({ resource }) => resource);
    const described = ({ resource, description }: Operation) => ({
      name: resource!.name,
      title: resource!.name[0]!.toUpperCase() + resource!.name.slice(1),
      description,
      mimeType: JSON_TYPE,
    });
    const isTemplate = ({ resource }: Operation) => pathNames(resource!.uri).length > 0;
    this.list = {
      resources: all.filter((one) => !isTemplate(one)).map((one) => ({ uri: one.resource!.uri, ...described(one) })),
    };
    this.templates = {
      resourceTemplates: all.filter(isTemplate).map((one) => ({ uriTemplate: one.resource!.uri, ...described(one) })),
    };
    this.#readers = all.map((operation) => readerOf(operation, contextOf));
  }

  /** @throws ResourceNotFoundError also for what belongs to another account; ProtocolError for other refusals */
  async read(uri: string, caller: McpCaller & Caller): Promise<ReadResourceResult> {
    const reader = this.#readers.find(({ match }) => match.test(uri));
    if (!reader) throw new ResourceNotFoundError(uri);
    const text = await this.refusing(uri, caller, async () => {
      await caller.count(caller.viewer);
      return reader.read(uri, caller);
    });
    return { contents: [{ uri, mimeType: JSON_TYPE, text }], ...(reader.isPublic && PUBLIC) };
  }

  /** Runs what may be refused, and refuses in the form of the protocol. */
  async refusing<T>(uri: string | undefined, { requestId }: McpCaller, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { body } = this.#answerError(error, requestId);
      if (uri !== undefined && body.code === 'not_found') throw new ResourceNotFoundError(uri);
      throw new ProtocolError(ProtocolErrorCode.InvalidRequest, String(body.detail), body);
    }
  }
}

interface Reader {
  match: RegExp;
  isPublic: boolean;
  read(uri: string, caller: Caller): Promise<string>;
}

function readerOf(operation: Operation, contextOf: ContextOf): Reader {
  const { resource, parameters, scopes } = operation;
  const run = runner(operation, () => new ApiError('not_found'));
  const match = new RegExp(`^${resource!.uri.replace(/\{\w+\}/g, '([^/]+)')}$`);
  const variables = pathNames(resource!.uri).map((name) => parameters.find((one) => one.name === name)!.variable);
  return {
    match,
    isPublic: !scopes.length,
    async read(uri, caller) {
      permit(operation, caller.viewer);
      const found = match.exec(uri)!;
      const values = Object.fromEntries(variables.map((variable, i) => [variable, found[i + 1]]));
      return JSON.stringify(await run(values, undefined, contextOf(caller)));
    },
  };
}
