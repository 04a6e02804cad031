/** Writes GraphQL mutations to the audit log: one entry for each root field, failed ones included. */
import {
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  type FieldNode,
  getOperationAST,
  Kind,
  OperationTypeNode,
  valueFromASTUntyped,
} from 'graphql';
import { apiErrorOf, type Context } from '../../schema/index.ts';
import { shownError } from '../http/errors.ts';
import type { AuditRequest } from '../http/requests.ts';

/** Executes an operation, and audits mutations. The path of an entry is `/graphql#` and the name of the field. */
export function auditedExecute(auditRequest: AuditRequest): (args: ExecutionArgs) => Promise<ExecutionResult> {
  return async (args) => {
    const result = await execute(args);
    const operation = getOperationAST(args.document, args.operationName);
    if (operation?.operation !== OperationTypeNode.MUTATION) return result;
    const context = args.contextValue as Context;
    const isOperator = context.viewer?.kind === 'operator';
    const fields = operation.selectionSet.selections.map((node) =>
      node.kind === Kind.FIELD
        ? {
            path: `/graphql#${node.name.value}`,
            key: (node.alias ?? node.name).value,
            resource: isOperator ? concernedBy(node, args.variableValues) : undefined,
          }
        : { path: '/graphql', key: undefined, resource: undefined },
    );
    for (const { path, key, resource } of fields)
      auditRequest(context, { method: 'POST', path, status: statusOf(result, key), resource });
    return result;
  };
}

const KINDS = { acct_: 'account', 'SRV-': 'server', 'TOP-': 'topup' } as const;

/** Returns the account, the server or the top-up that an argument names. */
function concernedBy({ arguments: given = [] }: FieldNode, variables: ExecutionArgs['variableValues']) {
  for (const { value } of given) {
    const id: unknown = valueFromASTUntyped(value, variables as Record<string, unknown>);
    const kind =
      typeof id === 'string' && ID.test(id) && KINDS[id.slice(0, id.search(/[_-]/) + 1) as keyof typeof KINDS];
    if (kind) return { type: kind, id: id as string };
  }
  return undefined;
}
const ID = /^(acct_[0-9a-z]{26}|(SRV|TOP)-[0-9A-Z]{10})$/;

/** The status that REST would answer. An error without a path concerns the whole request, such as a variable. */
function statusOf({ errors = [] }: ExecutionResult, key: string | undefined): number {
  const error = errors.find(({ path }) => path === undefined || key === undefined || path[0] === key);
  if (!error) return 200;
  if (error.path === undefined && !apiErrorOf(error)) return 400;
  return shownError(error, () => {}).extensions.status as number;
}
