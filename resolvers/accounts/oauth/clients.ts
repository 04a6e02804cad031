/** Lists and deletes the OAuth clients of an account, and replaces their secrets. */
import { FIND_OPEN_SESSIONS } from '../../../entities/accounts/credential.ts';
import { HAS_OTHER_WAY_IN, OauthClient, REPLACE_SECRET } from '../../../entities/accounts/oauth-client.ts';
import { revokeCredentials } from '../../../entities/accounts/revoke.ts';
import { find } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { isId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { digest, mintCredential } from '../../../entities/secrets.ts';
import { accountOf, actorOf, type Context } from '../../context.ts';
import { found } from '../../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../../pages.ts';
import { lockOwnAccount, requireOpen } from '../account.ts';
import { endSessions } from '../auth/sessions.ts';
import { authenticateClient, sourceOf } from './client.ts';

/** Lists the clients, newest first; the operator reads the clients of all accounts. */
export const listOauthClients = (context: Context, request: PageRequest): Promise<Page<OauthClient>> =>
  pageOfAccount(context, OauthClient, request);

/**
 * Deletes a client. Its tokens and the keys that they created end at once.
 * @throws ApiError not_found, or validation_failed for the last way into an account without a password
 */
export async function deleteOauthClient(context: Context, id: string): Promise<{ id: string; tokensRevoked: number }> {
  if (!isId('cl', id)) throw new ApiError('not_found');
  const owner = context.viewer?.accountId;
  const { accountId } = found(await find(context.db, OauthClient, { id, ...(owner && { accountId: owner }) }));
  return context.db.transaction(async (tx) => {
    // Under this lock, the client can neither get nor refresh a token.
    await lockAccount(tx, accountId);
    await requireOpen(tx, context, 'while suspended');
    if (!(await HAS_OTHER_WAY_IN.first(tx, [accountId, id]))!.other) throw onlyWayIn();
    const { clients, sessions } = await revokeCredentials(tx, accountId, [id], actorOf(context));
    if (!clients.length) throw new ApiError('not_found');
    return { id, tokensRevoked: sessions.length };
  });
}

const onlyWayIn = () =>
  new ApiError(
    'validation_failed',
    'The account has no password, so without this client nothing opens it. If its secret leaked, replace it by {RotateOauthClientSecret}.',
  );

/** A client with its new secret, which the service cannot show again. */
export interface RotatedClient {
  id: string;
  clientSecret: string;
  tokensRevoked: number;
}

/**
 * Replaces the secret of a client of the caller's account, who proves the present one. The tokens of the client end at once,
 * but for the caller's. So the caller can repeat a request whose answer was lost. The creations of the only
 * way into the account end, too. Otherwise a thief of one token would stay.
 * @throws ApiError invalid_client, ip_not_allowed, not_found for a client of another account, or validation_failed
 * without a token of the only way in
 */
export async function rotateClientSecret(context: Context, id: string, present: string): Promise<RotatedClient> {
  const accountId = accountOf(context);
  found(isId('cl', id) && (await find(context.db, OauthClient, { id, accountId })));
  const client = await authenticateClient(context, { clientId: id, clientSecret: present });
  return context.db.transaction(async (tx) => {
    await lockOwnAccount(tx, context, 'while suspended');
    const isOnly = !(await HAS_OTHER_WAY_IN.first(tx, [accountId, id]))!.other;
    if (isOnly && context.viewer?.holder !== id) throw notByCreated();
    const rotated = await replaceSecret(context, tx, client, { expected: client.secretDigest });
    if (isOnly) await revokeCreated(context, tx, client);
    return rotated;
  });
}

const notByCreated = () =>
  new ApiError(
    'validation_failed',
    'The creations of the client end with its secret, and so would this credential. Request a token of the client by {IssueOauthToken}, and repeat this request with it.',
  );

/** Ends the credentials, webhooks and SSH keys that a client created, and those that they created in turn. */
const revokeCreated = (context: Context, tx: Transaction, { id, accountId }: OauthClient) =>
  revokeCredentials(tx, accountId, [id], actorOf(context), [id]);

/**
 * Gives a client a new secret for the operator, and ends all its tokens and all that it created. The event has the reason.
 * @throws ApiError not_found
 */
export async function resetClient(context: Context, id: string, reason: string): Promise<RotatedClient> {
  const client = found(isId('cl', id) && (await find(context.db, OauthClient, { id })));
  return context.db.transaction(async (tx) => {
    await lockAccount(tx, client.accountId);
    const reset = await replaceSecret(context, tx, client, { expected: null, reason });
    await revokeCreated(context, tx, client);
    return reset;
  });
}

/** The caller holds the lock of the account. @throws ApiError invalid_client if the secret is another by now */
async function replaceSecret(
  context: Context,
  tx: Transaction,
  client: OauthClient,
  { expected, reason }: { expected: Buffer | null; reason?: string },
): Promise<RotatedClient> {
  const { id, accountId } = client;
  const actor = actorOf(context);
  const clientSecret = mintCredential('cs');
  if (!(await REPLACE_SECRET.first(tx, [id, digest(clientSecret), expected]))) throw new ApiError('invalid_client');
  const open = await FIND_OPEN_SESSIONS.all(tx, [accountId]);
  const others = open.filter(({ id, source }) => source === sourceOf(client) && id !== actor.id);
  const ids = others.map((session) => session.id);
  const tokensRevoked = await endSessions(tx, accountId, ids, 'secret_rotated', actor);
  await record(tx, accountId, id, { type: 'oauth_client.secret_rotated', actor, data: reason ? { reason } : {} });
  return { id, clientSecret, tokensRevoked };
}
