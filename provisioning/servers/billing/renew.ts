/**
 * Renews servers when the time that is paid for ends. Many at once, in one transaction: their transfers, their new times,
 * events and audit entries exist together or not at all, under the lease of the one task that renews.
 *
 * Only settled servers are looked at. One that is busy is renewed, or suspended, once it has settled.
 */
import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { PAID_HOURS } from '../../../entities/money.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { Server } from '../../../entities/servers/server.ts';
import { PERIODIC_LANE, periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { resumeAccount, retrySuspended, solventAccounts } from '../steps/resume.ts';
import { expire, expiredSuspensions, suspend } from '../steps/suspend.ts';
import { byDueTime, byOrderNumber, chargeRenewals, chooseAffordable } from './charge.ts';

export const RENEWAL_PROCESS = 'renewals';
/** How often it is looked for what is due. */
const TICK_SECONDS = 60;
/** How many servers or accounts one transaction takes. */
const CHUNK = 200;
const HOUR_MS = 3_600_000;

/** The task that resumes the servers of one account. */
export const RESUME_TASK = { lane: PERIODIC_LANE, process: RENEWAL_PROCESS, step: 'resume-account' } as const;

/** Renews what is due, resumes what can be paid again, and deletes what was not paid for too long. */
export function renewalProcess(db: Database): Process {
  return periodic({
    start: async () => {
      const due = await db.query(`${DUE} limit $1`, [CHUNK + 1]);
      if (!due.length) return hop('resume');
      return hop(due.length > CHUNK ? 'start' : 'resume', { commit: renewDue });
    },
    resume: async () => {
      const accounts = await solventAccounts(db, CHUNK);
      const commit = async (tx: Transaction) => {
        for (const accountId of accounts) await retrySuspended(tx, accountId, RESUME_TASK);
      };
      return hop(accounts.length < CHUNK ? 'expire' : 'resume', { commit });
    },
    expire: async () => {
      const servers = await expiredSuspensions(db, CHUNK + 1);
      const commit = (tx: Transaction) => expire(tx, servers.slice(0, CHUNK));
      return servers.length > CHUNK ? hop('expire', { commit }) : hop('start', { afterSeconds: TICK_SECONDS, commit });
    },
    [RESUME_TASK.step]: resumeAccount,
  });
}

const IS_DUE = `status in ('RUNNING', 'STOPPED') and paid_until <= now()`;
const DUE = `
  select order_number, account_id from server where ${IS_DUE} order by paid_until, id`;

/** Renews or suspends the servers that are due first. One that another transaction has locked waits for the next tick. */
async function renewDue(tx: Transaction): Promise<void> {
  const found = await tx.query<Pick<Server, 'orderNumber' | 'accountId'>>(`${DUE} limit $1`, [CHUNK]);
  await lockAccount(tx, ...new Set(found.map(({ accountId }) => accountId)));
  const due = await tx.query<Server>(
    `select ${columnsOf(Server)} from server where order_number = any($1) and ${IS_DUE}
      order by order_number for update skip locked`,
    [found.map(({ orderNumber }) => orderNumber)],
  );
  const { affordable, others } = await chooseAffordable(tx, due.sort(byDueTime));
  await chargeRenewals(
    tx,
    affordable.map((server) => ({
      server,
      periodFrom: server.paidUntil!,
      periodTo: new Date(server.paidUntil!.getTime() + PAID_HOURS * HOUR_MS),
    })),
  );
  for (const server of others.sort(byOrderNumber))
    await suspend(tx, server, server.autoRenew ? 'insufficient_balance' : 'not_renewed');
}
