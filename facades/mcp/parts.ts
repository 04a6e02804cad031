/** The parts that all MCP servers of a process share. */

import { type Precheck, prechecksOf } from './checks.ts';
import { type Complete, completer } from './completion.ts';
import { type QuestionCodec, questionCodec, type Secrets } from './confirm.ts';
import { Questions } from './questions.ts';
import { Resources } from './resources.ts';
import { ToolLists } from './tool-lists.ts';
import { type ToolOptions, toolsOf } from './tools.ts';

export interface McpParts {
  lists: ToolLists;
  resources: Resources;
  complete: Complete;
  codec: QuestionCodec;
  questions: Questions;
  /** By tool. */
  prechecks: ReadonlyMap<string, Precheck>;
  contextOf: ToolOptions['contextOf'];
}

export interface McpPartsOptions extends ToolOptions {
  /** Sign questions. */
  secrets: Secrets;
}

export function partsOf({ secrets, ...options }: McpPartsOptions): McpParts {
  return {
    lists: new ToolLists(toolsOf(options)),
    resources: new Resources(options),
    complete: completer(options.operations, options.contextOf),
    codec: questionCodec(secrets),
    questions: new Questions(),
    prechecks: prechecksOf(options.operations, options.contextOf),
    contextOf: options.contextOf,
  };
}
