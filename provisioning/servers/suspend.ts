/**
 * What becomes of a server whose next month is not paid: it is suspended, resumes when the balance suffices, and is
 * deleted after a week.
 */
import { SYSTEM } from '../../entities/audit.ts';
import type { Database, Queryable, Transaction } from '../../entities/database.ts';
import { columnsOf } from '../../entities/entity.ts';
import { hoursFromNow, PAID_HOURS } from '../../entities/money.ts';
import { SERVER_LIFECYCLE, Server } from '../../entities/server.ts';
import { transition } from '../../entities/transition.ts';
import { done, type LeasedTask, type Outcome, startTask } from '../tasks.ts';
import { chargeRenewals, chooseAffordable } from './charge.ts';

/** How long a server stays suspended before it is deleted. */
export const SUSPENDED_DAYS = 7;

/** Why a server is not renewed: the balance did not suffice, or its owner did not want it to be. */
type Reason = 'insufficient_balance' | 'not_renewed';

/**
 * Suspends a settled server. It changes the state alone: no machine is switched off here.
 * @returns whether it was suspended; one that is busy is left alone
 */
export async function suspend(
  tx: Transaction,
  { orderNumber, status }: Pick<Server, 'orderNumber' | 'status'>,
  reason: Reason,
): Promise<boolean> {
  if (status !== 'RUNNING' && status !== 'STOPPED') return false;
  const moved = await transition(tx, SERVER_LIFECYCLE, orderNumber, 'SUSPENDED', {
    actor: SYSTEM,
    set: { suspendedAt: new Date(), suspendedFrom: status },
    data: { reason },
  });
  return moved !== undefined;
}

/**
 * Has the suspended servers of an account tried again, after its balance grew or one is to renew itself again. Nothing
 * happens if there are none.
 */
export async function retrySuspended(
  tx: Transaction,
  accountId: string,
  task: { lane: string; process: string; step: string },
): Promise<void> {
  const [suspended] = await tx.query(`select 1 from server where account_id = $1 and status = 'SUSPENDED' limit 1`, [
    accountId,
  ]);
  if (suspended) await startTask(tx, { ...task, subject: `resume:${accountId}`, accountId });
}

/** The step that resumes what one account can pay for. */
export const resumeAccount = async ({ accountId }: LeasedTask): Promise<Outcome> =>
  done({ commit: (tx) => resumeAffordable(tx, accountId) });

/** Up to so many accounts that can pay for a suspended server that renews itself. */
export async function solventAccounts(db: Database, limit: number): Promise<string[]> {
  const rows = await db.query<{ accountId: string }>(
    `select distinct account_id as "accountId" from server join balance using (account_id)
      where status = 'SUSPENDED' and auto_renew and price_month_micros <= available_micros limit $1`,
    [limit],
  );
  return rows.map(({ accountId }) => accountId);
}

/**
 * Resumes the suspended servers of an account that its balance suffices for, the longest due first. The new month begins
 * now: the time in which a server was suspended is not charged.
 */
export async function resumeAffordable(tx: Transaction, accountId: string): Promise<void> {
  const suspended = await tx.query<Server>(
    `select ${columnsOf(Server)} from server where account_id = $1 and status = 'SUSPENDED' and auto_renew
      order by paid_until, id for update`,
    [accountId],
  );
  const { affordable } = await chooseAffordable(tx, suspended);
  const paidUntil = hoursFromNow(PAID_HOURS);
  for (const { orderNumber, suspendedFrom } of affordable)
    await transition(tx, SERVER_LIFECYCLE, orderNumber, suspendedFrom ?? 'STOPPED', {
      actor: SYSTEM,
      set: { suspendedAt: null, suspendedFrom: null, paidUntil },
      data: { operation: 'resume' },
    });
  await chargeRenewals(
    tx,
    affordable.map((server) => ({ server, periodFrom: new Date(), periodTo: paidUntil })),
  );
}

/** Up to so many servers that have been suspended for too long. */
export function expiredSuspensions(db: Queryable, limit: number): Promise<Pick<Server, 'orderNumber' | 'accountId'>[]> {
  return db.query(
    `select order_number as "orderNumber", account_id as "accountId" from server
      where status = 'SUSPENDED' and suspended_at <= now() - $1::int * interval '1 day' order by suspended_at limit $2`,
    [SUSPENDED_DAYS, limit],
  );
}

/** Deletes a server that nobody paid for, also a protected one. One that has resumed meanwhile is left alone. */
export async function expire(
  tx: Transaction,
  { orderNumber, accountId }: Pick<Server, 'orderNumber' | 'accountId'>,
  destroyTask: { lane: string; process: string; step: string },
): Promise<void> {
  const [still] = await tx.query(
    `select 1 from server where order_number = $1 and status = 'SUSPENDED'
      and suspended_at <= now() - $2::int * interval '1 day' for update`,
    [orderNumber, SUSPENDED_DAYS],
  );
  if (!still) return;
  await transition(tx, SERVER_LIFECYCLE, orderNumber, 'DELETING', { actor: SYSTEM, data: { reason: 'unpaid' } });
  await startTask(tx, { ...destroyTask, subject: orderNumber, accountId });
}
