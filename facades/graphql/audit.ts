/** Writes GraphQL mutations to the audit log: one entry for each root field, failed ones included. */
import { type ExecutionArgs, type ExecutionResult, execute, getOperationAST, Kind, OperationTypeNode } from 'graphql';
import { apiErrorOf, type Context } from '../../schema/index.ts';
import { shownError } from '../http/errors.ts';
import type { AuditRequest } from '../http/requests.ts';

/** Executes an operation, and audits mutations. The path of an entry is `/graphql#` and the name of the field. */
export function auditedExecute(auditRequest: AuditRequest): (args: ExecutionArgs) => Promise<ExecutionResult> {
  return async (args) => {
    const result = await execute(args);
    const operation = getOperationAST(args.document, args.operationName);
    if (operation?.operation !== OperationTypeNode.MUTATION) return result;
    const fields = operation.selectionSet.selections.map((node) =>
      node.kind === Kind.FIELD
        ? { path: `/graphql#${node.name.value}`, key: (node.alias ?? node.name).value }
        : { path: '/graphql', key: undefined },
    );
    for (const { path, key } of fields)
      auditRequest(args.contextValue as Context, { method: 'POST', path, status: statusOf(result, key) });
    return result;
  };
}

/** The status that REST would answer. An error without a path concerns the whole request, such as a variable. */
function statusOf({ errors = [] }: ExecutionResult, key: string | undefined): number {
  const error = errors.find(({ path }) => path === undefined || key === undefined || path[0] === key);
  if (!error) return 200;
  if (error.path === undefined && !apiErrorOf(error)) return 400;
  return shownError(error, () => {}).extensions.status as number;
}
