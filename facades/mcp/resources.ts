/**
 * Resources: the answer of each operation with `@resource`, as JSON. Clients can subscribe to the changes of servers, and
 * read other resources again after a while.
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
import { jsonOf } from '../compile/sharing.ts';
import type { ErrorResponder } from '../http/errors.ts';
import type { McpCaller } from './caller.ts';
import type { ToolOptions } from './tools.ts';

const JSON_TYPE = 'application/json';
/** The letters of an unknown URI that an error repeats. */
const URI_SHOWN_MAX = 200;
const PUBLIC = { ttlMs: 60_000, cacheScope: 'public' as const };

export class Resources {
  readonly list: { resources: Resource[] };
  readonly templates: { resourceTemplates: ResourceTemplateType[] };
  readonly #readers: Reader[];
  readonly #errorResponse: ErrorResponder;

  constructor({
    operations,
    contextOf,
    errorResponse,
  }: Pick<ToolOptions, 'operations' | 'contextOf' | 'errorResponse'>) {
    this.#errorResponse = errorResponse;
    const withResource = operations.filter(({ resource }) => resource);
    const described = ({ resource, description }: Operation) => ({
      name: resource!.name,
      title: resource!.name[0]!.toUpperCase() + resource!.name.slice(1),
      description,
      mimeType: JSON_TYPE,
    });
    const isTemplate = ({ resource }: Operation) => pathNames(resource!.uri).length > 0;
    this.list = {
      resources: withResource
        .filter((operation) => !isTemplate(operation))
        .map((operation) => ({ uri: operation.resource!.uri, ...described(operation) })),
    };
    this.templates = {
      resourceTemplates: withResource
        .filter(isTemplate)
        .map((operation) => ({ uriTemplate: operation.resource!.uri, ...described(operation) })),
    };
    this.#readers = withResource.map((operation) => readerOf(operation, contextOf));
  }

  /** @throws ResourceNotFoundError, also for a resource of another account; ProtocolError for other refusals */
  async read(uri: string, caller: McpCaller & Caller): Promise<ReadResourceResult> {
    const reader = this.#readers.find(({ match }) => match.test(uri));
    if (!reader) throw new ResourceNotFoundError(uri.slice(0, URI_SHOWN_MAX));
    const text = await this.refusing(uri, caller, () => reader.read(uri, caller));
    return { contents: [{ uri, mimeType: JSON_TYPE, text }], ...(reader.isPublic && PUBLIC) };
  }

  /** Does the work, and turns its errors into those of the protocol. */
  async refusing<T>(uri: string | undefined, { requestId }: McpCaller, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { body } = this.#errorResponse(error, requestId);
      if (uri !== undefined && body.code === 'not_found') throw new ResourceNotFoundError(uri.slice(0, URI_SHOWN_MAX));
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
  const variables = pathNames(resource!.uri).map(
    (name) => parameters.find((parameter) => parameter.name === name)!.variable,
  );
  return {
    match,
    isPublic: !scopes.length,
    async read(uri, caller) {
      permit(operation, caller.viewer);
      const [, ...texts] = match.exec(uri)!;
      const values = Object.fromEntries(variables.map((variable, i) => [variable, texts[i]]));
      return jsonOf(await run(values, undefined, contextOf(caller)));
    },
  };
}
