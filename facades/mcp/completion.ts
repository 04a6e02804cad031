/** Completes arguments with values that the caller may read: its servers, and the bastions of the catalog. */
import type { CompleteRequest, CompleteResult } from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';
import { type Caller, type ContextOf, permit, runner, type Values } from '../compile/run.ts';
import type { McpCaller } from './caller.ts';

const VALUES_MAX = 100;
const NONE: CompleteResult = { completion: { values: [], hasMore: false } };

export type Complete = (params: CompleteRequest['params'], caller: McpCaller & Caller) => Promise<CompleteResult>;

/** For each argument, the tool that lists its values, the member with the value, and the parameters of the call. */
const SOURCES: ReadonlyMap<string, readonly [tool: string, member: string, values: Values]> = new Map([
  ['order_number', ['list_servers', 'order_number', { limit: VALUES_MAX }]],
  ['region', ['list_bastions', 'code', {}]],
]);

/** A caller without the scope gets no proposals. */
export function completer(operations: readonly Operation[], contextOf: ContextOf): Complete {
  const lists = new Map(
    [...SOURCES.values()].flatMap(([name]) => {
      const operation = operations.find(({ tool }) => tool?.name === name);
      return operation
        ? [[name, { operation, run: runner(operation, () => new ApiError('validation_failed')) }] as const]
        : [];
    }),
  );
  return async ({ argument }, caller) => {
    const source = SOURCES.get(argument.name);
    const list = source && lists.get(source[0]);
    if (!list) return NONE;
    const [, member, parameters] = source;
    try {
      permit(list.operation, caller.viewer);
    } catch {
      return NONE;
    }
    const { data } = (await list.run(parameters, undefined, contextOf(caller))) as { data: Values[] };
    const typed = argument.value.toLowerCase();
    const values = data.map((item) => String(item[member])).filter((value) => value.toLowerCase().startsWith(typed));
    return { completion: { values: values.slice(0, VALUES_MAX), hasMore: values.length > VALUES_MAX } };
  };
}
