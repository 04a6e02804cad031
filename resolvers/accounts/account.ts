/** The account and its balance. */
import { Account, type BalanceView, FIND_BALANCE, setSuspension } from '../../entities/accounts/account.ts';
import { READ_STANDING } from '../../entities/accounts/credential.ts';
import { find } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { isId } from '../../entities/ids.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { accountOf, actorOf, type Context } from '../context.ts';
import { found } from '../errors.ts';
import { requireStanding } from './auth/credential-end.ts';
import { requireActive } from './auth/scope.ts';

export async function findAccount(context: Context): Promise<Account> {
  return found(await find(context.db, Account, { id: accountOf(context) }));
}

/** Locks an account until the end of the transaction, and reads it. @throws ApiError not_found */
export async function lockedAccount(tx: Transaction, id: string): Promise<Account> {
  if (!isId('acct', id)) throw new ApiError('not_found');
  await lockAccount(tx, id);
  return found(await find(tx, Account, { id }));
}

/**
 * Locks the caller's account until the end of the transaction. Revocations and suspensions hold the same lock, so the
 * caller keeps its power until the transaction ends.
 * @returns the id of the account
 * @throws ApiError as `requireOpen` does
 */
export async function lockOwnAccount(tx: Transaction, context: Context, allowed?: WhileSuspended): Promise<string> {
  const accountId = accountOf(context);
  await lockAccount(tx, accountId);
  await requireOpen(tx, context, allowed);
  return accountId;
}

/** Locks the caller's account, and reads it. @throws ApiError as `lockOwnAccount` does */
export async function lockedOwnAccount(tx: Transaction, context: Context, allowed?: WhileSuspended): Promise<Account> {
  const id = await lockOwnAccount(tx, context, allowed);
  return tx.manager.findOneByOrFail(Account, { id });
}

/** Suspended accounts may do it too, because it only reads, ends something, or keeps a thief out. */
export type WhileSuspended = 'while suspended';

/**
 * Asks the database about the credential of the caller, because another request or process may have ended it. The answer
 * stays true while the caller holds the lock of the account.
 * @throws ApiError revoked_credential, expired_credential or account_suspended
 */
export async function requireOpen(db: Queryable, { viewer }: Context, allowed?: WhileSuspended): Promise<void> {
  if (!viewer) return;
  if (viewer.kind === 'operator') return requireStanding(db, viewer);
  const standing = (await READ_STANDING.first(db, [viewer.credentialId, viewer.accountId]))!;
  if (!standing.open) throw new ApiError('revoked_credential');
  if (viewer.expiresAt && viewer.expiresAt.getTime() <= Date.now()) throw new ApiError('expired_credential');
  if (!allowed) requireActive(standing);
}

/**
 * Asks the database whether the caller's account is suspended, as `requireOpen` does. Money that has come pays for its order
 * even if the credential has ended.
 * @throws ApiError account_suspended
 */
export async function requireUnsuspended(db: Queryable, { viewer }: Context): Promise<void> {
  if (viewer) requireActive((await READ_STANDING.first(db, [viewer.credentialId, viewer.accountId]))!);
}

export async function findBalance(context: Context): Promise<BalanceView> {
  return found(await FIND_BALANCE.first(context.db, [accountOf(context)]));
}

/** The servers of a suspended account run until their paid time ends, or are off until the suspension ends. */
export const SUSPENDED_SERVERS = ['RUN', 'OFF'] as const;
export type SuspendedServers = (typeof SUSPENDED_SERVERS)[number];

/**
 * Suspends an account, so that it may only read, end its own things, and change its password. Its servers run until their
 * paid time ends, or go off at once. They do not renew. The service closes its open subscriptions, and the account may open
 * them again. A suspended account keeps its first reason. Servers that are off stay off until the suspension ends.
 * @throws ApiError not_found
 */
export const suspendAccount = (
  context: Context,
  id: string,
  reason: string,
  servers: SuspendedServers,
): Promise<Account> =>
  context.db.transaction((tx) => changeSuspension(tx, context, id, { reason, serversOff: servers === 'OFF' }));

/** Ends a suspension, and turns the servers on that it turned off. @throws ApiError not_found */
export const resumeAccount = (context: Context, id: string): Promise<Account> =>
  context.db.transaction((tx) => changeSuspension(tx, context, id, { reason: null }));

/** Suspends an account within a transaction, or resumes it. @throws ApiError not_found */
export async function changeSuspension(
  tx: Transaction,
  context: Context,
  id: string,
  suspension: { reason: string | null; serversOff?: boolean },
): Promise<Account> {
  // Under this lock, no new or rotated credential misses the change.
  await lockedAccount(tx, id);
  await setSuspension(tx, id, suspension, actorOf(context));
  await context.provisioning.servers.followSuspension(tx, id, actorOf(context));
  return found(await find(tx, Account, { id }));
}
