/** What all MCP servers of a process share, made once. */
import { type Complete, completer } from './completion.ts';
import { type AskedCodec, askedCodec } from './confirm.ts';
import { Resources } from './resources.ts';
import { ToolLists } from './tool-lists.ts';
import { type ToolOptions, toolsOf } from './tools.ts';

export interface McpParts {
  lists: ToolLists;
  resources: Resources;
  complete: Complete;
  codec: AskedCodec;
  contextOf: ToolOptions['contextOf'];
}

export interface McpPartsOptions extends ToolOptions {
  /** Signs what goes to clients and comes back. At least 32 bytes; the same in every process. */
  secret: Buffer;
}

export function partsOf({ secret, ...options }: McpPartsOptions): McpParts {
  return {
    lists: new ToolLists(toolsOf(options)),
    resources: new Resources(options),
    complete: completer(options.operations, options.contextOf),
    codec: askedCodec(secret),
    contextOf: options.contextOf,
  };
}
