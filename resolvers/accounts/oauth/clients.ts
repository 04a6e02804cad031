/** The OAuth clients of an account: listed, and deleted. */

import { OauthClient } from '../../../entities/accounts/oauth-client.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { isId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { actorOf, type Context } from '../../context.ts';
import { type Page, type PageRequest, pageOfAccount } from '../../pages.ts';
import { endSessions, OPEN_SESSION } from '../auth/sessions.ts';
import { sourceOf } from './token.ts';

/** Newest first; the operator sees those of all accounts. */
export const listOauthClients = (context: Context, request: PageRequest): Promise<Page<OauthClient>> =>
  pageOfAccount(context, OauthClient, request);

/** Deletes a client; its tokens end at once. @throws ApiError not_found */
export async function deleteOauthClient(context: Context, id: string): Promise<{ id: string; tokensRevoked: number }> {
  if (!isId('cl', id)) throw new ApiError('not_found');
  const accountId = context.viewer?.accountId;
  const client = await context.db.source.manager.findOneBy(OauthClient, { id, ...(accountId && { accountId }) });
  if (!client) throw new ApiError('not_found');
  return context.db.transaction((tx) => remove(context, tx, client));
}

async function remove(context: Context, tx: Transaction, client: OauthClient) {
  const { id, accountId } = client;
  // No token can be issued or refreshed meanwhile.
  await lockAccount(tx, accountId);
  const removed = await tx.query('delete from oauth_client where id = $1 returning id', [id]);
  if (!removed.length) throw new ApiError('not_found');
  await record(tx, accountId, id, { type: 'oauth_client.removed', actor: actorOf(context) });
  const sessions = await tx.query<{ id: string }>(
    `select id from session where account_id = $1 and source = $2 and ${OPEN_SESSION}`,
    [accountId, sourceOf(client)],
  );
  const ids = sessions.map((session) => session.id);
  return { id, tokensRevoked: await endSessions(context, tx, accountId, ids, 'client_deleted') };
}
