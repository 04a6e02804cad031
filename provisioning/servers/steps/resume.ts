/**
 * How a suspended server comes back. As soon as the balance suffices, a month of it is held and the machine is turned on
 * again, if it was on before; when it has given proof, the server is what it was before it was suspended, the month
 * begins, and the money is earned. Until then it is SUSPENDED, and deleting it gives the whole month back.
 *
 * Nothing of that is caused by a credential, so it counts in no API key's spending limit.
 */

import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { newId } from '../../../entities/ids.ts';
import { hoursFromNow, PAID_HOURS } from '../../../entities/money.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { Server, type ServerChange } from '../../../entities/servers/server.ts';
import { done, hop, type LeasedTask, type NewTask, nap, type Outcome, startTask } from '../../tasks/tasks.ts';
import { byDueTime, byOrderNumber, chooseAffordable } from '../billing/charge.ts';
import { transferHeld } from '../billing/hold.ts';
import { move } from './outcome.ts';
import type { ServerStep } from './step.ts';
import { serverTask } from './task.ts';

type Resume = Extract<ServerChange, { operation: 'resume' }>;

/**
 * Has the suspended servers of an account tried again, after its balance grew or one is to renew itself again. Nothing
 * happens if there are none.
 */
export async function retrySuspended(
  tx: Transaction,
  accountId: string,
  task: Pick<NewTask, 'lane' | 'process' | 'step'>,
): Promise<void> {
  const [suspended] = await tx.query(`select 1 from server where account_id = $1 and status = 'SUSPENDED' limit 1`, [
    accountId,
  ]);
  if (suspended) await startTask(tx, { ...task, subject: subjectOf(accountId), accountId });
}
const subjectOf = (accountId: string): string => `resume:${accountId}`;

/** Those of these accounts that have suspended servers, in the order of their ids. */
export async function suspendedAmong(tx: Transaction, accountIds: ReadonlySet<string>): Promise<string[]> {
  if (!accountIds.size) return [];
  const rows = await tx.query<{ id: string }>(
    `select distinct account_id as id from server where account_id = any($1) and status = 'SUSPENDED' order by 1`,
    [[...accountIds]],
  );
  return rows.map(({ id }) => id);
}

/** The step that has resumed what one account can pay for. */
export const resumeAccount = async ({ accountId }: LeasedTask): Promise<Outcome> =>
  done({ commit: (tx) => resumeAffordable(tx, accountId) });

/**
 * Up to so many accounts that can pay for a suspended server that renews itself, and that have no task for it yet; in the
 * order of their ids.
 */
export async function solventAccounts(db: Database, limit: number): Promise<string[]> {
  const rows = await db.query<{ accountId: string }>(
    `select distinct account_id from server join balance using (account_id)
      where status = 'SUSPENDED' and change is null and auto_renew and price_month_micros <= available_micros
        and not exists (select from task where subject = '${subjectOf('')}' || account_id)
      order by 1 limit $1`,
    [limit],
  );
  return rows.map(({ accountId }) => accountId);
}

/**
 * Has the suspended servers of an account resumed that its balance suffices for, the longest due first. The time in which
 * one was suspended is not charged.
 */
export async function resumeAffordable(tx: Transaction, accountId: string): Promise<void> {
  await lockAccount(tx, accountId);
  const suspended = await tx.query<Server>(
    `select ${columnsOf(Server)} from server
      where account_id = $1 and status = 'SUSPENDED' and change is null and auto_renew
      order by order_number for update`,
    [accountId],
  );
  const { affordable } = await chooseAffordable(tx, suspended.toSorted(byDueTime));
  for (const server of affordable) {
    const change: Resume = {
      id: newId('chg'),
      operation: 'resume',
      from: server.suspendedFrom ?? 'STOPPED',
      heldMicros: String(server.priceMonthMicros),
    };
    await tx.query('update server set change = $2 where order_number = $1', [
      server.orderNumber,
      JSON.stringify(change),
    ]);
    await transferHeld(tx, server, change, 'renewal');
  }
  for (const server of affordable.toSorted(byOrderNumber)) await startTask(tx, serverTask(server, 'resume'));
}

/** Turns the machine on if it was on before, and waits for proof; one that was off stays off. */
export const powerOn: ServerStep = async (task, { server, driver, pollSeconds }) => {
  const { orderNumber: order, generation, change } = server;
  if (change?.operation !== 'resume') return hop('suspend');
  const on = change.from === 'RUNNING';
  const seen = await driver.power({ order, generation }, on ? 'on' : 'off', change.id, task.aborted);
  const reached = on ? seen.proven : seen.power === 'off';
  if (seen.phase !== 'present' || !reached) return nap(pollSeconds);
  return done({ commit: (tx) => resumed(tx, server, change) });
};

async function resumed(tx: Transaction, server: Server, change: Resume): Promise<void> {
  const paidUntil = hoursFromNow(PAID_HOURS);
  const set = { change: null, suspendedAt: null, suspendedFrom: null, paidUntil };
  const well = { failureCode: null, failureMessage: null };
  await move(tx, server, change.from, { ...set, ...well }, { data: { operation: 'resume' } });
  await transferHeld(tx, server, change, 'capture', { periodFrom: new Date(), periodTo: paidUntil });
  await record(tx, server.accountId, server.orderNumber, {
    type: 'server.renewed',
    actor: SYSTEM,
    data: { paidUntil: paidUntil.toISOString() },
  });
}

/** How a server says that it should have resumed by now. */
const FAILED = {
  code: 'resume_failed',
  message: 'The server could not be turned on again yet. It is tried on; its month begins when it runs.',
};

/**
 * What is done for a suspended server is never given up: it may be paid for, or must not run. That it does not resume is
 * told once.
 * @returns the step that is tried on
 */
export async function persist(tx: Transaction, server: Server): Promise<string> {
  if (server.change?.operation !== 'resume') return 'suspend';
  if (server.failureCode === FAILED.code) return 'resume';
  const { accountId, orderNumber } = server;
  await tx.query(
    'update server set failure_code = $2, failure_message = $3, updated_at = now() where order_number = $1',
    [orderNumber, FAILED.code, FAILED.message],
  );
  await record(tx, accountId, orderNumber, {
    type: 'server.action_failed',
    actor: SYSTEM,
    data: { status: server.status, operation: 'resume' },
  });
  tx.changed({ kind: 'server', accountId, id: orderNumber });
  return 'resume';
}
