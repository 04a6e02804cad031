/**
 * Refresh tokens are good for one use (RFC 9700, section 4.14.2): using one replaces the pair, and using it again means
 * that it was stolen, now or before, so that everything that came of the same login ends.
 */

import { Session } from '../../../entities/accounts/credential.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { credentialKind, digest } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { insertSession, type SessionSource, type TokenPair } from './session.ts';

export interface Refreshed {
  accountId: string;
  tokens: TokenPair;
}

const REFUSALS = ['invalid_credential', 'expired_credential', 'revoked_credential', 'refresh_token_reused'] as const;
type Refusal = (typeof REFUSALS)[number];

/**
 * Replaces the pair of a refresh token: the old access token dies at once. The new one lives 30 days more, and no longer
 * than 90 days after the login.
 * @param source refuses, as invalid, a token of a session that came from elsewhere, such as another OAuth client's
 * @throws ApiError invalid_, expired_ or revoked_credential, or refresh_token_reused
 */
export async function refresh(
  context: Context,
  refreshToken: string,
  { source }: { source?: SessionSource } = {},
): Promise<Refreshed> {
  if (credentialKind(refreshToken) !== 'rt') throw new ApiError('invalid_credential');
  const refreshDigest = digest(refreshToken);
  const outcome = await context.db.transaction(async (tx): Promise<Refreshed | Refusal> => {
    const found = await tx.manager.findOneBy(Session, { refreshDigest });
    if (!found || (source && found.source !== source)) return 'invalid_credential';
    // All that opens, rotates or ends sessions holds this lock, so that none can slip by while a family ends.
    await lockAccount(tx, found.accountId);
    const session = await tx.manager.findOneBy(Session, { id: found.id });
    if (!session) return 'invalid_credential';
    if (session.rotatedAt) {
      await endFamily(context, tx, session);
      return 'refresh_token_reused';
    }
    if (session.revokedAt) return 'revoked_credential';
    if (session.refreshExpiresAt.getTime() <= Date.now()) return 'expired_credential';
    return rotate(context, tx, session);
  });
  // Thrown out here, because what ended a family must be committed.
  if (typeof outcome === 'string') throw new ApiError(outcome);
  return outcome;
}

async function rotate(context: Context, tx: Transaction, session: Session): Promise<Refreshed> {
  const { id, accountId, source, scope } = session;
  const now = new Date();
  await tx.manager.update(Session, { id }, { rotatedAt: now, revokedAt: now });
  tx.changed({ kind: 'credential', accountId, id });
  const tokens = await insertSession(context, tx, { accountId, source, scope, rotated: session });
  return { accountId, tokens };
}

/** Ends all sessions of a family; told of once, however often the token comes back. */
async function endFamily(context: Context, tx: Transaction, { accountId, familyId, source }: Session): Promise<void> {
  const ended = await tx.query<{ id: string }>(
    'update session set revoked_at = now() where family_id = $1 and account_id = $2 and revoked_at is null returning id',
    [familyId, accountId],
  );
  if (!ended.length) return;
  const actor = { type: 'access_token', id: familyId, name: source, requestId: context.requestId } as const;
  const data = { sessionsRevoked: ended.length };
  await record(tx, accountId, familyId, { type: 'session.reuse_detected', actor, data });
  tx.changed(...ended.map(({ id }) => ({ kind: 'credential', accountId, id }) as const));
}
