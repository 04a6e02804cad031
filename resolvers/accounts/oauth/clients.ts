/** Lists and deletes the OAuth clients of an account. */
import { FIND_OPEN_SESSIONS } from '../../../entities/accounts/credential.ts';
import { OauthClient } from '../../../entities/accounts/oauth-client.ts';
import { find, remove } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { isId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { actorOf, type Context } from '../../context.ts';
import { found } from '../../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../../pages.ts';
import { endSessions } from '../auth/sessions.ts';
import { sourceOf } from './token.ts';

/** Lists the clients, newest first; the operator reads the clients of all accounts. */
export const listOauthClients = (context: Context, request: PageRequest): Promise<Page<OauthClient>> =>
  pageOfAccount(context, OauthClient, request);

/** Deletes a client, and ends its tokens at once. @throws ApiError not_found */
export async function deleteOauthClient(context: Context, id: string): Promise<{ id: string; tokensRevoked: number }> {
  if (!isId('cl', id)) throw new ApiError('not_found');
  const accountId = context.viewer?.accountId;
  const client = found(await find(context.db, OauthClient, { id, ...(accountId && { accountId }) }));
  return context.db.transaction((tx) => deleteClient(context, tx, client));
}

async function deleteClient(context: Context, tx: Transaction, client: OauthClient) {
  const { id, accountId } = client;
  // Under this lock, the client can neither get nor refresh a token.
  await lockAccount(tx, accountId);
  if (!(await remove(tx, OauthClient, { id }))) throw new ApiError('not_found');
  await record(tx, accountId, id, { type: 'oauth_client.removed', actor: actorOf(context) });
  const open = await FIND_OPEN_SESSIONS.all(tx, [accountId]);
  const ids = open.filter(({ source }) => source === sourceOf(client)).map((session) => session.id);
  return { id, tokensRevoked: await endSessions(context, tx, accountId, ids, 'client_deleted') };
}
