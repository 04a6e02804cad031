/**
 * The money of a server that resumes. When the balance suffices, the worker holds a month and turns the machine on,
 * if it was on before. When the engine reports that, the server returns to its earlier state. Then the month begins, and the
 * money is captured. Until then it is SUSPENDED, and deletion releases the whole month. No API key's spending limit counts it.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import {
  BEGIN_CHANGE,
  END_RESUMES,
  FIND_ACCOUNTS_WITH_SUSPENDED,
  LOCK_RESUMING,
  LOCK_SUSPENDED_SERVERS,
  NOTE_FAILURE,
  PAID_UNTIL,
} from '../../../entities/servers/renewal.ts';
import type { Server, ServerChange } from '../../../entities/servers/server.ts';
import { type NewTask, startTask } from '../../../entities/tasks/start.ts';
import { done, type LeasedTask, type Outcome } from '../../tasks/tasks.ts';
import { move } from '../move.ts';
import { serverTask } from '../task.ts';
import { byDueTime, byOrderNumber, chooseAffordable } from './charge.ts';
import { releaseChange, transferHeld } from './hold.ts';

type Resume = Extract<ServerChange, { operation: 'resume' }>;

/** The prefix of the subjects of tasks that resume the servers of an account. */
export const RESUME_SUBJECT = 'resume:';

/** Starts the task that resumes the suspended servers of an account, for each of the accounts that has any. */
export async function retrySuspended(
  tx: Transaction,
  accountIds: readonly string[],
  task: Pick<NewTask, 'lane' | 'process' | 'step'>,
): Promise<void> {
  if (!accountIds.length) return;
  const suspended = await FIND_ACCOUNTS_WITH_SUSPENDED.all(tx, [accountIds]);
  for (const { accountId } of suspended)
    await startTask(tx, { ...task, subject: RESUME_SUBJECT + accountId, accountId });
}

/** The step that resumes the servers that an account can pay for. */
export const resumeAccount = async ({ accountId }: LeasedTask): Promise<Outcome> =>
  done({ commit: (tx) => resumeAffordable(tx, accountId) });

/**
 * Resumes the suspended servers that the balance of an account suffices for, those that were due first before the others.
 * The account does not pay for the time of the suspension.
 */
export async function resumeAffordable(tx: Transaction, accountId: string): Promise<void> {
  await lockAccount(tx, accountId);
  const suspended = await LOCK_SUSPENDED_SERVERS.all(tx, [accountId]);
  const { affordable } = await chooseAffordable(tx, suspended.toSorted(byDueTime));
  for (const server of affordable) {
    const change: Resume = {
      id: newId('chg'),
      operation: 'resume',
      from: server.suspendedFrom ?? 'STOPPED',
      heldMicros: String(server.priceMonthMicros),
    };
    await BEGIN_CHANGE.all(tx, [server.orderNumber, JSON.stringify(change)]);
    await transferHeld(tx, server, change, 'renewal');
  }
  for (const server of affordable.toSorted(byOrderNumber)) await startTask(tx, serverTask(server));
}

/**
 * Gives up the resumptions of an account that is suspended now, and releases their months. The caller has locked the account
 * and its servers.
 * @returns the servers, whose tasks the caller starts: they turn the machines off again
 */
export async function endResumes(tx: Transaction, accountId: string): Promise<Server[]> {
  const resuming = await LOCK_RESUMING.all(tx, [accountId]);
  await END_RESUMES.all(tx, [resuming.map(({ orderNumber }) => orderNumber), FAILED.code]);
  for (const server of resuming) await releaseChange(tx, server);
  tx.changedAll(resuming.map(({ orderNumber }) => ({ kind: 'server' as const, accountId, id: orderNumber })));
  return resuming;
}

/** Ends the resumption when the engine reports the machine as wanted. The engine's word suffices: a customer who closes the SSH port would have the machine without paying. */
export async function completeResume(tx: Transaction, server: Server, change: Resume): Promise<void> {
  const set = { change: null, suspendedAt: null, suspendedFrom: null, paidUntil: PAID_UNTIL };
  const well = { remedy: null, failureCode: null, failureMessage: null };
  const to = change.endsOff ? 'STOPPED' : change.from;
  const moved = await move(tx, server, to, { ...set, ...well }, { data: { operation: 'resume' } });
  await transferHeld(tx, server, change, 'capture', { periodFrom: moved.updatedAt, periodTo: moved.paidUntil });
  await record(tx, server.accountId, server.orderNumber, {
    type: 'server.renewed',
    actor: SYSTEM,
    data: { paidUntil: moved.paidUntil!.toISOString() },
  });
}

/** The failure of a server that should have resumed by now. */
const FAILED = {
  code: 'resume_failed',
  message: 'The server could not be turned on again yet. We keep trying, and its month begins when it runs.',
};

/**
 * Records once that a server does not resume. The worker keeps trying, because its month is held.
 */
export async function reportUnresumed(tx: Transaction, server: Server): Promise<void> {
  const { accountId, orderNumber, change } = server;
  if (change?.operation !== 'resume' || change.reported) return;
  await BEGIN_CHANGE.all(tx, [orderNumber, JSON.stringify({ ...change, reported: true } satisfies Resume)]);
  await NOTE_FAILURE.all(tx, [orderNumber, FAILED.code, FAILED.message]);
  await record(tx, accountId, orderNumber, {
    type: 'server.action_failed',
    actor: SYSTEM,
    data: { status: server.status, operation: 'resume' },
  });
  tx.changed({ kind: 'server', accountId, id: orderNumber });
}
