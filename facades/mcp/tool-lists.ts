/** The tools that a caller sees: those of its view for which the credential has the scope. */
import type { Tool } from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import { toolTerms, worded } from '../compile/terms.ts';
import { unknownParameters } from '../http/requests.ts';
import type { McpCaller, View } from './caller.ts';
import { definitionOf } from './definitions.ts';
import { outputSchemasOf } from './output-schemas.ts';
import type { McpTool } from './tools.ts';
import { Prepared } from './transport/prepared.ts';

const ALL: View = { toolsets: undefined, readOnly: false, shortText: false };

export class ToolLists {
  /** The lists by scopes and view. */
  readonly prepared = new Prepared();
  readonly #tools: readonly McpTool[];
  readonly #byName: ReadonlyMap<string, McpTool>;
  readonly #definitions: readonly { tool: McpTool; withoutToken: Tool; withToken: Tool }[];

  constructor(tools: readonly McpTool[]) {
    this.#tools = tools;
    this.#byName = new Map(tools.map((tool) => [tool.operation.tool!.name, tool]));
    const operations = tools.map(({ operation }) => operation);
    const outputs = outputSchemasOf(operations);
    const terms = toolTerms(operations);
    this.#definitions = tools.map((tool) => {
      const output = outputs.get(tool.operation.tool!.name);
      const definition = (withToken: boolean) =>
        worded(definitionOf(tool.operation, tool.args, output, withToken), terms);
      return { tool, withoutToken: definition(false), withToken: definition(true) };
    });
  }

  /** The tool, if it is in the view. The credential may lack its scope, because a call can have another credential. */
  find(name: string, view: View): McpTool | undefined {
    const tool = this.#byName.get(name);
    return tool && isIn(view, tool) ? tool : undefined;
  }

  /** A caller without a header gets all tools of the view, with an argument for the credential. */
  of({ viewer, view }: Pick<McpCaller, 'viewer' | 'view'>): { tools: Tool[] } {
    const scopes = viewer ? [...viewer.scopes].sort().join(' ') : '';
    const key = ['tools', scopes, [...(view.toolsets ?? [])].sort(), view.readOnly].join('|');
    const tools = this.prepared.placeholderOf(key, () =>
      this.#definitions
        .filter(({ tool }) => isIn(view, tool))
        .filter(({ tool }) => !viewer || tool.operation.scopes.every((scope) => viewer.scopes.has(scope)))
        .map(({ withoutToken, withToken }) => (viewer ? withoutToken : withToken)),
    );
    return { tools: tools as unknown as Tool[] };
  }

  /** @throws ApiError invalid_query */
  viewOf(query: Readonly<Record<string, unknown>>): View {
    const { toolsets, readonly, text, ...others } = query;
    for (const _ in others) throw unknownParameters(query, ['toolsets', 'readonly', 'text']);
    if (toolsets === undefined && readonly === undefined && text === undefined) return ALL;
    const names = new Set(this.#tools.map(({ operation }) => operation.noun));
    const selected = toolsets === undefined ? undefined : [toolsets].flat().flatMap((text) => String(text).split(','));
    if (selected?.some((name) => !names.has(name)))
      throw invalid('toolsets', `toolsets must be one or more of ${[...names].join(', ')}.`);
    if (readonly !== undefined && !['1', 'true', '0', 'false'].includes(String(readonly)))
      throw invalid('readonly', 'readonly must be 1 or 0.');
    if (text !== undefined && text !== 'json' && text !== 'short') throw invalid('text', 'text must be json or short.');
    const readOnly = readonly === '1' || readonly === 'true';
    return { toolsets: selected && new Set(selected), readOnly, shortText: text === 'short' };
  }
}

const isIn = ({ toolsets, readOnly }: View, { operation }: McpTool): boolean =>
  (!toolsets || toolsets.has(operation.noun)) && (!readOnly || operation.kind === 'query');

const invalid = (field: string, message: string) =>
  new ApiError('invalid_query', message, { errors: [{ field, code: 'not_allowed', message }] });
