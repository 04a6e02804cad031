/** Scope strings of OAuth (RFC 6749, section 3.3). A client registers one, and each token may narrow it. */
import { expandScopes, type RequiredScope, SCOPES } from '../../../entities/accounts/credential.ts';
import { ApiError } from '../../../entities/errors.ts';

const KNOWN: ReadonlySet<string> = new Set(SCOPES);

/** Returns a scope string without repetitions. @throws ApiError with the given code for an unknown scope */
export function readScope(scope: string, refusal: 'invalid_scope' | 'invalid_client_metadata'): string {
  const wanted = [...new Set(scope.split(' '))];
  if (!wanted.every((one) => KNOWN.has(one)))
    throw new ApiError(refusal, `A scope consists of ${SCOPES.join(', ')}, separated by single spaces.`);
  return wanted.join(' ');
}

/** Returns the scope of a token: the registered scope, or the requested part of it. @throws ApiError invalid_scope */
export function narrowedScope(registered: string, asked: string | null | undefined): string {
  if (!asked) return registered;
  const scope = readScope(asked, 'invalid_scope');
  const held = expandScopes(registered);
  if (!scope.split(' ').every((one) => held.has(one as RequiredScope)))
    throw new ApiError('invalid_scope', `The client may not exceed its registered scope: ${registered}.`);
  return scope;
}
