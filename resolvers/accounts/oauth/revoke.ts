/** Ends tokens (RFC 7009): a client its own, and whoever holds a token that token. */

import { Session } from '../../../entities/accounts/credential.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { credentialKind, digest } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { authenticateClient, bearerOf, type ClientCredentials } from './client.ts';
import { sourceOf } from './token.ts';

export interface RevocationRequest extends ClientCredentials {
  token?: string | null | undefined;
}

/**
 * Ends the grant of a token: the token, its pair, and what rotation made of them. A token that is unknown, over, or of
 * another client is left as it is, and the answer is the same.
 * @throws ApiError invalid_client or invalid_request
 */
export async function revokeOauthToken(context: Context, request: RevocationRequest): Promise<Record<string, never>> {
  const { token, source } = await revocable(context, request);
  const kind = credentialKind(token);
  if (kind === 'live')
    throw new ApiError('invalid_request', 'API keys are revoked at DELETE /v1/auth/api-keys/{key_id}.');
  if (kind !== 'at' && kind !== 'rt') return {};
  const { db, requestId } = context;
  const column = kind === 'at' ? 'accessDigest' : 'refreshDigest';
  const found = await db.source.manager.findOneBy(Session, { [column]: digest(token) });
  if (!found || (source && found.source !== source)) return {};
  const { accountId, familyId } = found;
  const actor = { type: 'access_token', id: found.id, name: found.source, requestId } as const;
  await db.transaction(async (tx) => {
    // No rotation can slip by while the family ends.
    await lockAccount(tx, accountId);
    const ended = await tx.query<{ id: string }>(
      'update session set revoked_at = now() where family_id = $1 and account_id = $2 and revoked_at is null returning id',
      [familyId, accountId],
    );
    for (const { id } of ended) {
      const data = { reason: 'revoked' };
      await record(tx, accountId, id, { type: 'session.revoked', actor, data });
      tx.changed({ kind: 'credential', accountId, id });
    }
  });
  return {};
}

/** The token, and the source that its session must have (null: any, for the token proves itself). */
async function revocable(
  context: Context,
  request: RevocationRequest,
): Promise<{ token: string; source: string | null }> {
  const bearer = bearerOf(request.authorization);
  if (bearer && !request.clientId && !request.clientSecret) {
    if (request.token && request.token !== bearer)
      throw new ApiError('invalid_client', 'A token that is sent as Bearer can end itself only.');
    return { token: bearer, source: null };
  }
  const client = await authenticateClient(context, request);
  if (!request.token) throw new ApiError('invalid_request', 'token is required.');
  return { token: request.token, source: sourceOf(client) };
}
