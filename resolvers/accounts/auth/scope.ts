/** Checks of the caller's credential before a field resolves. */
import type { RequiredScope } from '../../../entities/accounts/credential.ts';
import { ApiError } from '../../../entities/errors.ts';
import type { Viewer } from '../../context.ts';
import type { Proof } from './throttle.ts';

/** @throws ApiError missing_credential or insufficient_scope (RFC 6750) */
export function requireScope(viewer: Viewer | null, scope: RequiredScope): void {
  if (scope === 'public') return;
  if (!viewer) throw new ApiError('missing_credential');
  if (!viewer.scopes.has(scope)) {
    throw new ApiError('insufficient_scope', `The credential lacks the scope ${scope}.`, { requiredScope: scope });
  }
}

/** For fields that create, change or cost something. @throws ApiError account_suspended, with the reason */
export function requireActive(viewer: Pick<Viewer, 'suspendedFor'> | null): void {
  if (viewer?.suspendedFor) throw new ApiError('account_suspended', `The account is suspended: ${viewer.suspendedFor}`);
}

/**
 * Returns the proof of a caller's credential for the throttle. Only one with the scope full proves. API keys and tokens of
 * clients have a count apart. So a thief of one does not block the sessions of logins.
 */
export const proofOf = (viewer: Viewer | null): Proof | undefined => {
  if (!viewer?.scopes.has('full')) return undefined;
  return viewer.kind === 'access_token' && !viewer.holder ? 'login' : 'credential';
};
