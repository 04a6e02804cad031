/** Which tools a caller sees: those of the view that it asks for, and that its credential allows. */
import type { Tool } from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import type { McpCaller, View } from './caller.ts';
import { definitionOf } from './definitions.ts';
import type { McpTool } from './tools.ts';

const LISTS_MAX = 1_000;
const ALL: View = { toolsets: undefined, readOnly: false };

export class ToolLists {
  readonly #tools: readonly McpTool[];
  readonly #byName: ReadonlyMap<string, McpTool>;
  readonly #listed: readonly { tool: McpTool; bare: Tool; withToken: Tool }[];
  /** As many as there are scopes and views; views that nobody would ask for twice are few. */
  readonly #lists = new Map<string, { tools: Tool[] }>();

  constructor(tools: readonly McpTool[]) {
    this.#tools = tools;
    this.#byName = new Map(tools.map((tool) => [tool.operation.tool!.name, tool]));
    this.#listed = tools.map((tool) => ({
      tool,
      bare: definitionOf(tool.operation, tool.args, false),
      withToken: definitionOf(tool.operation, tool.args, true),
    }));
  }

  /** The tool, if it is in the view. What a credential lacks the scope for may be called with another one. */
  find(name: string, view: View): McpTool | undefined {
    const tool = this.#byName.get(name);
    return tool && seen(tool, view) ? tool : undefined;
  }

  /** Without a header, all tools of the view, each with an argument for the credential. */
  of({ viewer, view }: Pick<McpCaller, 'viewer' | 'view'>): { tools: Tool[] } {
    const scopes = viewer ? [...viewer.scopes].sort().join(' ') : '';
    const key = [scopes, [...(view.toolsets ?? [])].sort(), view.readOnly].join('|');
    let list = this.#lists.get(key);
    if (!list) {
      const tools = this.#listed
        .filter(({ tool }) => seen(tool, view))
        .filter(({ tool }) => !viewer || tool.operation.scopes.every((scope) => viewer.scopes.has(scope)))
        .map(({ bare, withToken }) => (viewer ? bare : withToken));
      list = { tools };
      if (this.#lists.size < LISTS_MAX) this.#lists.set(key, list);
    }
    return list;
  }

  /** @throws ApiError invalid_query */
  viewOf({ toolsets, readonly }: { toolsets?: unknown; readonly?: unknown }): View {
    if (toolsets === undefined && readonly === undefined) return ALL;
    const known = new Set(this.#tools.map(({ operation }) => operation.noun));
    const asked = toolsets === undefined ? undefined : [toolsets].flat().flatMap((one) => String(one).split(','));
    const unknown = asked?.find((one) => !known.has(one));
    if (unknown !== undefined) throw wrong('toolsets', `The toolsets are ${[...known].join(', ')}.`);
    if (readonly !== undefined && !['1', 'true', '0', 'false'].includes(String(readonly)))
      throw wrong('readonly', 'readonly is 1 or 0.');
    return { toolsets: asked && new Set(asked), readOnly: readonly === '1' || readonly === 'true' };
  }
}

const seen = ({ operation }: McpTool, { toolsets, readOnly }: View): boolean =>
  (!toolsets || toolsets.has(operation.noun)) && (!readOnly || operation.kind === 'query');

const wrong = (field: string, message: string) =>
  new ApiError('invalid_query', message, { errors: [{ field, code: 'not_allowed', message }] });
