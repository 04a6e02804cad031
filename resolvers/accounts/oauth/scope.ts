/** Scope strings of OAuth (RFC 6749, section 3.3): registered once, narrowed with each token. */
import { expandScopes, type RequiredScope, SCOPES } from '../../../entities/accounts/credential.ts';
import { ApiError } from '../../../entities/errors.ts';

const KNOWN: ReadonlySet<string> = new Set(SCOPES);

/** A scope string without repetitions. @throws ApiError with that code if one is unknown */
export function readScope(scope: string, refusal: 'invalid_scope' | 'invalid_client_metadata'): string {
  const wanted = [...new Set(scope.split(' '))];
  if (!wanted.every((one) => KNOWN.has(one)))
    throw new ApiError(refusal, `A scope is made of ${SCOPES.join(', ')}, separated by single spaces.`);
  return wanted.join(' ');
}

/** The scope of a token: all that was registered, or the part of it that is asked for. @throws ApiError invalid_scope */
export function narrowedScope(registered: string, asked: string | null | undefined): string {
  if (!asked) return registered;
  const scope = readScope(asked, 'invalid_scope');
  const held = expandScopes(registered);
  if (!scope.split(' ').every((one) => held.has(one as RequiredScope)))
    throw new ApiError('invalid_scope', `The client may have no more than the scope ${registered}.`);
  return scope;
}
