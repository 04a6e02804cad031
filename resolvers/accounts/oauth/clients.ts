/** Lists and deletes the OAuth clients of an account. */
import { OauthClient } from '../../../entities/accounts/oauth-client.ts';
import { revokeCredentials } from '../../../entities/accounts/revoke.ts';
import { find } from '../../../entities/database/table.ts';
import { ApiError } from '../../../entities/errors.ts';
import { isId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { actorOf, type Context } from '../../context.ts';
import { found } from '../../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../../pages.ts';
import { requireOpen } from '../account.ts';

/** Lists the clients, newest first; the operator reads the clients of all accounts. */
export const listOauthClients = (context: Context, request: PageRequest): Promise<Page<OauthClient>> =>
  pageOfAccount(context, OauthClient, request);

/** Deletes a client. Its tokens and the keys that they created end at once. @throws ApiError not_found */
export async function deleteOauthClient(context: Context, id: string): Promise<{ id: string; tokensRevoked: number }> {
  if (!isId('cl', id)) throw new ApiError('not_found');
  const owner = context.viewer?.accountId;
  const { accountId } = found(await find(context.db, OauthClient, { id, ...(owner && { accountId: owner }) }));
  return context.db.transaction(async (tx) => {
    // Under this lock, the client can neither get nor refresh a token.
    await lockAccount(tx, accountId);
    await requireOpen(tx, context, 'while suspended');
    const { clients, sessions } = await revokeCredentials(tx, accountId, [id], actorOf(context));
    if (!clients.length) throw new ApiError('not_found');
    return { id, tokensRevoked: sessions.length };
  });
}
