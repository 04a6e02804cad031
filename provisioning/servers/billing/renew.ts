/**
 * Renews servers when their paid time ends. One transaction renews many: their transfers, paid times, events and audit
 * entries exist together or not at all. A change of the power without money for the machine is given up.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { PAID_HOURS } from '../../../entities/money.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { FIND_RELEASABLE, releaseWithheld } from '../../../entities/payments/withheld.ts';
import {
  FIND_ASTRAY,
  FIND_DUE_SERVERS,
  FIND_SOLVENT_ACCOUNTS,
  FIND_UNPAID_SERVERS,
  LOCK_DUE_SERVERS,
} from '../../../entities/servers/renewal.ts';
import { CHANGING, type Server } from '../../../entities/servers/server.ts';
import { PERIODIC_LANE, periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { undoChange } from './change.ts';
import { byDueTime, byOrderNumber, chargeRenewals, chooseAffordable } from './charge.ts';
import { followSuspension } from './kept-off.ts';
import { RESUME_SUBJECT, resumeAccount, retrySuspended } from './resume.ts';
import { expire, suspend } from './suspend.ts';

export const RENEWAL_PROCESS = 'renewals';
/** Seconds between two rounds. */
const TICK_SECONDS = 60;
/** Servers or accounts of one transaction. */
const CHUNK = 200;
const HOUR_MS = 3_600_000;

type Due = Pick<Server, 'orderNumber' | 'accountId' | 'paidUntil'>;
/** The data of the task during a round. */
interface Round {
  /** The last server of the previous chunk. Null: the round begins with the first one. */
  after?: { orderNumber: string; paidUntil: Date | string | null } | null;
}

/** The task that resumes the suspended servers of one account. */
export const RESUME_TASK = { lane: PERIODIC_LANE, process: RENEWAL_PROCESS, step: 'resume-account' } as const;

/**
 * Renews servers that are due, resumes suspended ones that can be paid again, and deletes those that stayed unpaid. It also
 * releases refunds whose payments became final. Servers that are off with their account follow its suspension.
 */
export function renewalProcess(db: Database): Process {
  return periodic({
    start: async ({ data }) => {
      const { paidUntil = null, orderNumber = null } = (data as Round).after ?? {};
      const due = await FIND_DUE_SERVERS.all(db, [CHUNK + 1, paidUntil, orderNumber]);
      const chunk = due.slice(0, CHUNK);
      const commit = (tx: Transaction) => renewDue(tx, chunk);
      const after = due.length > CHUNK ? chunk.at(-1)! : null;
      return hop(after ? 'start' : 'resume', { commit, data: { after } satisfies Round });
    },
    resume: async () => {
      const accounts = await FIND_SOLVENT_ACCOUNTS.all(db, [CHUNK, RESUME_SUBJECT]);
      const accountIds = accounts.map(({ accountId }) => accountId);
      const commit = (tx: Transaction) => retrySuspended(tx, accountIds, RESUME_TASK);
      return hop(accounts.length < CHUNK ? 'expire' : 'resume', { commit });
    },
    expire: async () => {
      const servers = await FIND_UNPAID_SERVERS.all(db, [CHUNK + 1]);
      const orderNumbers = servers.slice(0, CHUNK).map(({ orderNumber }) => orderNumber);
      const commit = (tx: Transaction) => expire(tx, orderNumbers);
      return hop(servers.length > CHUNK ? 'expire' : 'release', { commit });
    },
    release: async () => {
      const accounts = await FIND_RELEASABLE.all(db, [CHUNK]);
      const accountIds = accounts.map(({ accountId }) => accountId);
      const commit = async (tx: Transaction) => {
        await releaseWithheld(tx, accountIds);
        await retrySuspended(tx, accountIds, RESUME_TASK);
      };
      return accountIds.length ? hop('release', { commit }) : hop('follow', { data: { after: '' } });
    },
    follow: async ({ data }) => {
      const [found] = await FIND_ASTRAY.all(db, [1, data.after]);
      if (!found) return hop('start', { afterSeconds: TICK_SECONDS });
      const { accountId } = found;
      const commit = (tx: Transaction) => followSuspension(tx, accountId, SYSTEM);
      return hop('follow', { data: { after: accountId }, commit });
    },
    [RESUME_TASK.step]: resumeAccount,
  });
}

/** Renews or suspends those servers that are still due. A server that another transaction has locked waits for the next round. */
async function renewDue(tx: Transaction, found: readonly Due[]): Promise<void> {
  await lockAccount(tx, ...new Set(found.map(({ accountId }) => accountId)));
  const due = await LOCK_DUE_SERVERS.all(tx, [found.map(({ orderNumber }) => orderNumber)]);
  const { affordable, others, suspended } = await chooseAffordable(tx, due.sort(byDueTime));
  await chargeRenewals(
    tx,
    affordable.map((server) => ({
      server,
      periodFrom: server.paidUntil!,
      periodTo: new Date(server.paidUntil!.getTime() + PAID_HOURS * HOUR_MS),
    })),
  );
  for (const server of others.sort(byOrderNumber)) {
    const { status, autoRenew, accountId } = server;
    const isCut = CHANGING.has(status) && status !== 'REBUILDING';
    const stable = isCut ? await undoChange(tx, server) : server;
    const unpaid = autoRenew ? 'insufficient_balance' : 'not_renewed';
    await suspend(tx, stable, suspended.has(accountId) ? 'account_suspended' : unpaid);
  }
}
