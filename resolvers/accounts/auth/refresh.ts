/**
 * Refresh tokens, each for one use (RFC 9700, section 4.14.2). A refresh replaces the pair of tokens. A second use means
 * that a thief has the token, so the service ends all sessions of the same login.
 */
import { END_FAMILY, READ_SESSION, ROTATE_SESSION, Session } from '../../../entities/accounts/credential.ts';
import type { OauthClient } from '../../../entities/accounts/oauth-client.ts';
import { find } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { credentialKind, digest } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { noteClientUse, sourceOf } from '../oauth/client.ts';
import { insertSession, type TokenPair } from './session.ts';

export interface Refreshed {
  accountId: string;
  tokens: TokenPair;
}

const REFUSALS = ['invalid_credential', 'expired_credential', 'revoked_credential', 'refresh_token_reused'] as const;
type Refusal = (typeof REFUSALS)[number];

/**
 * Replaces the pair of a refresh token, and ends the old access token at once. The new refresh token lives for 30 days,
 * but not longer than 90 days after the login.
 * @param client the OAuth client that has authenticated, and accepts only its own tokens. Absent: a caller without a secret,
 * who renews no token of a client (RFC 6749, section 6)
 * @throws ApiError invalid_, expired_ or revoked_credential, refresh_token_reused, invalid_client, or rate_limited for
 * an account that never paid or is suspended
 */
export async function refresh(context: Context, refreshToken: string, client?: OauthClient): Promise<Refreshed> {
  if (credentialKind(refreshToken) === 'at')
    throw new ApiError('invalid_credential', 'This is an access token. Send the refresh token that came with it.');
  if (credentialKind(refreshToken) !== 'rt') throw new ApiError('invalid_credential');
  const refreshDigest = digest(refreshToken);
  const found = await find(context.db, Session, { refreshDigest });
  if (!found) throw new ApiError('invalid_credential');
  if (client ? found.source !== sourceOf(client) : found.source.startsWith('oauth:')) {
    noteRefused(context, found);
    throw client ? new ApiError('invalid_credential') : ofClient();
  }
  // A second use counts nothing. So a thief who used up the limit does not delay its discovery.
  if (!found.revokedAt) await context.countUnpaid(found.accountId, context.address, 'refresh');
  const outcome = await context.db.transaction(async (tx): Promise<Refreshed | Refusal> => {
    // Every change of sessions holds this lock, so no session escapes while a family ends.
    await lockAccount(tx, found.accountId);
    const session = await READ_SESSION.first(tx, [found.id]);
    if (!session) return 'invalid_credential';
    if (session.rotatedAt) {
      await endFamily(context, tx, session);
      return 'refresh_token_reused';
    }
    if (session.revokedAt) {
      noteRefused(context, session);
      return 'revoked_credential';
    }
    if (session.isOver) return 'expired_credential';
    if (client) await noteClientUse(context, tx, client);
    return rotate(context, tx, session);
  });
  // The throw is outside the transaction, so that the end of a family is committed.
  if (typeof outcome === 'string') throw new ApiError(outcome);
  return outcome;
}

/** Tells the owner of a session that somebody sent its refresh token in vain. */
function noteRefused(context: Context, { accountId: account, id, source: name }: Session): void {
  const actor = { type: 'access_token', id, name, requestId: null } as const;
  const { address } = context;
  context.security.note({ type: 'session.refused', account, address, resource: { type: 'session', id }, actor });
}

const ofClient = () =>
  new ApiError(
    'invalid_credential',
    'The refresh token belongs to an OAuth client. The client renews it with its secret at {IssueOauthToken}.',
  );

async function rotate(context: Context, tx: Transaction, session: Session): Promise<Refreshed> {
  const { id, accountId, source, scope } = session;
  await ROTATE_SESSION.all(tx, [id]);
  tx.changed({ kind: 'credential', accountId, id });
  const tokens = await insertSession(context, tx, { accountId, source, scope, rotated: session });
  return { accountId, tokens };
}

/** Ends all sessions of a family, and records that once, even if the token comes again. */
async function endFamily(context: Context, tx: Transaction, { accountId, familyId, source }: Session): Promise<void> {
  const ended = await END_FAMILY.all(tx, [familyId, accountId]);
  if (!ended.length) return;
  const actor = { type: 'access_token', id: familyId, name: source, requestId: context.requestId } as const;
  const data = { sessionsRevoked: ended.length };
  await record(tx, accountId, familyId, { type: 'session.reuse_detected', actor, data });
  tx.changedAll(ended.map(({ id }) => ({ kind: 'credential', accountId, id }) as const));
}
