/** Closes an account for the operator. Its balance stays, and its owner may log in to read, and to ask for the balance. */
import { Account, setSuspension } from '../../entities/accounts/account.ts';
import { find } from '../../entities/database/table.ts';
import { LOCK_SERVERS_OF_ACCOUNT } from '../../entities/servers/find.ts';
import { actorOf, type Context } from '../context.ts';
import { found } from '../errors.ts';
import { destroyServer } from '../servers/delete.ts';
import { lockedAccount } from './account.ts';
import { type Revoked, revokeCredentialsOf } from './auth/revoke.ts';

export interface ClosedAccount {
  account: Account;
  revoked: Revoked;
  serversDeleted: number;
  refundedMicros: bigint;
}

/**
 * Suspends an account, ends its credentials and deletes its servers, with or without a refund, in one transaction. Closing
 * it again changes nothing but credentials and servers that came since. `resumeAccount` opens it again, without servers.
 * @throws ApiError not_found
 */
export async function closeAccount(
  context: Context,
  id: string,
  terms: { refund: boolean; reason: string },
): Promise<ClosedAccount> {
  return context.db.transaction(async (tx) => {
    await lockedAccount(tx, id);
    const { reason } = terms;
    await setSuspension(tx, id, { reason }, actorOf(context));
    const revoked = await revokeCredentialsOf(tx, context, id, reason);
    let refundedMicros = 0n;
    // All of them before their tasks, in the order of locks.
    const servers = await LOCK_SERVERS_OF_ACCOUNT.all(tx, [id]);
    for (const { orderNumber } of servers)
      refundedMicros += (await destroyServer(tx, context, orderNumber, terms)).refundedMicros;
    const account = found(await find(tx, Account, { id }));
    return { account, revoked, serversDeleted: servers.length, refundedMicros };
  });
}
