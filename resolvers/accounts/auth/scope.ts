/** Checks of the caller's credential before a field resolves. */
import type { RequiredScope } from '../../../entities/accounts/credential.ts';
import { ApiError } from '../../../entities/errors.ts';
import { OPERATOR_ROLES, type OperatorRight, type OperatorRole, ROLES_WITH } from '../../../entities/operator.ts';
import { callsCountAs, type Viewer } from '../../context.ts';
import type { Proof } from './throttle.ts';

/** @throws ApiError missing_credential or insufficient_scope (RFC 6750) */
export function requireScope(viewer: Viewer | null, scope: RequiredScope): void {
  if (scope === 'public') return;
  if (!viewer) throw new ApiError('missing_credential');
  if (!viewer.scopes.has(scope)) {
    throw new ApiError('insufficient_scope', `The credential lacks the scope ${scope}.`, { requiredScope: scope });
  }
}

/** Whether a role has a right. */
export const mayCall = (role: OperatorRole, right: OperatorRight): boolean =>
  (ROLES_WITH[right] as readonly OperatorRole[]).includes(role);

/** Operators need all these rights beside the scope. @throws ApiError insufficient_scope, with the roles that have them */
export function requireRight(viewer: Viewer | null, ...rights: OperatorRight[]): void {
  if (viewer?.kind !== 'operator') return;
  const roles = OPERATOR_ROLES.filter((role) => rights.every((right) => mayCall(role, right)));
  if (viewer.role && roles.includes(viewer.role)) return;
  const detail = `The role ${viewer.role} may not do this. Ask an operator with the role ${roles.join(' or ')}.`;
  throw new ApiError('insufficient_scope', detail, { requiredScope: 'operator' });
}

/** For fields that create, change or cost something. @throws ApiError account_suspended, with the reason */
export function requireActive(viewer: Pick<Viewer, 'suspendedFor'> | null): void {
  if (viewer?.suspendedFor) throw new ApiError('account_suspended', `The account is suspended: ${viewer.suspendedFor}`);
}

/**
 * Returns the proof of a caller's credential for the throttle. Only one with the scope full proves. Each login has a count
 * apart from the others, and from API keys and tokens of clients. So a thief of one does not block the owner's next login.
 */
export const proofOf = (viewer: Viewer | null): Proof | undefined => {
  if (!viewer?.scopes.has('full')) return undefined;
  return viewer.isLogin ? `login ${callsCountAs(viewer)}` : 'credential';
};

/**
 * The part of a day's count that only the logins of an account use. So a thief of an API key uses up nothing that the owner
 * needs after its revocation.
 */
export const keptForLogins = (most: number): number => Math.min(Math.max(0, most - 1), Math.ceil(most * 0.3));
