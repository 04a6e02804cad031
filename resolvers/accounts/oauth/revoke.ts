/** Token revocation (RFC 7009). A client ends its own tokens, and the holder of a token ends that token. */
import { ApiError } from '../../../entities/errors.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { credentialKind } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { findSession } from '../auth/session.ts';
import { endSessions } from '../auth/sessions.ts';
import { authenticateClient, bearerOf, type ClientCredentials, sourceOf } from './client.ts';

export interface RevocationRequest extends ClientCredentials {
  token?: string | null | undefined;
}

/**
 * Ends the grant of a token: the token, its pair, and all later pairs of the rotation. Ignores unknown and ended tokens,
 * and tokens of other clients, and answers the same. A replaced access token ends the later pairs until its own expiry, because
 * its holder may race with a refresh. A replaced refresh token always does, as at its second use.
 * @throws ApiError invalid_client or invalid_request
 */
export async function revokeOauthToken(context: Context, request: RevocationRequest): Promise<Record<string, never>> {
  const { token, source: required } = await revocable(context, request);
  const kind = credentialKind(token);
  if (kind === 'live') throw new ApiError('invalid_request', 'Revoke API keys by {RevokeApiKey}.');
  if (kind !== 'at' && kind !== 'rt') return {};
  const { db, requestId } = context;
  const found = await findSession(db, kind, token);
  if (!found || (required && found.source !== required)) return {};
  // Old access tokens lie about in logs and backups. Their finder must not end the present login.
  if (kind === 'at' && found.expiresAt.getTime() <= Date.now()) return {};
  const { id, accountId, source } = found;
  await db.transaction(async (tx) => {
    // Under this lock, no rotation escapes while the family ends.
    await lockAccount(tx, accountId);
    await endSessions(tx, accountId, [id], 'revoked', { type: 'access_token', id, name: source, requestId });
  });
  return {};
}

/** Returns the token, and the required source of its session. Null allows any, because the caller holds the token. */
async function revocable(
  context: Context,
  request: RevocationRequest,
): Promise<{ token: string; source: string | null }> {
  const bearer = bearerOf(request.authorization);
  if (bearer && !request.clientId && !request.clientSecret) {
    if (request.token && request.token !== bearer)
      throw new ApiError('invalid_client', 'A Bearer token can only revoke itself.');
    return { token: bearer, source: null };
  }
  const client = await authenticateClient(context, request);
  if (!request.token) throw new ApiError('invalid_request', 'token is required.');
  return { token: request.token, source: sourceOf(client) };
}
