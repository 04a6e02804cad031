/** Refuses calls that cannot succeed before their users are asked to confirm them. */
import { ApiError } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';
import { type Caller, type ContextOf, runner, type Values } from '../compile/run.ts';

/** @throws ApiError as the call would */
export type Precheck = (args: Values, caller: Caller) => Promise<void>;

/** The tools, with the tool that reads the thing by the same argument, and the refusal of a thing. */
const CHECKS: ReadonlyMap<string, readonly [tool: string, argument: string, refuse: (thing: Values) => void]> = new Map(
  [
    [
      'cancel_server',
      [
        'get_server',
        'order_number',
        ({ delete_protection }) => {
          if (delete_protection) throw new ApiError('delete_protected');
        },
      ],
    ],
  ],
);

/** The checks by tool. */
export function prechecksOf(operations: readonly Operation[], contextOf: ContextOf): ReadonlyMap<string, Precheck> {
  return new Map(
    [...CHECKS].flatMap(([name, [reader, argument, refuse]]) => {
      const operation = operations.find(({ tool }) => tool?.name === reader);
      const parameter = operation?.parameters.find((one) => one.name === argument);
      if (!operation || !parameter) return [];
      const run = runner(operation, () => new ApiError('not_found'));
      const check: Precheck = async (args, caller) =>
        refuse((await run({ [parameter.variable]: args[argument] }, undefined, contextOf(caller))) as Values);
      return [[name, check] as const];
    }),
  );
}
