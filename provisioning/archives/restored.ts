/**
 * The consequences of a restore. The machines, payments and payouts of the lost time exist, and the database does not know them.
 * So nothing may happen a second time until the operator has looked.
 */

import { ADOPT_DATABASE } from '../../entities/archive/own-database.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { type Actor, OPERATOR_ACCOUNT, SYSTEM } from '../../entities/history/audit.ts';
import { linkEntries } from '../../entities/history/audit-link.ts';
import { LAST_CHANGE } from '../../entities/history/event.ts';
import { record, recordAll } from '../../entities/history/record.ts';
import { LOSE_DEPOSITS, LOST_NUMBERS } from '../../entities/payments/deposit.ts';
import { linkTransfers } from '../../entities/payments/ledger-chain.ts';
import { LOCK_UNSETTLED_DEPLOYMENTS, moveDeployment } from '../../entities/servers/deployment.ts';
import { LIST_STOPPED_ENGINES, STOP_ENGINES } from '../../entities/servers/finding.ts';
import { FIND_FREE_DEDICATED_HOSTS, moveHost } from '../../entities/servers/host.ts';
import { signalTask } from '../../entities/tasks/start.ts';
import { LIST_LISTENERS } from '../../entities/webhooks/webhook.ts';
import { expireProposals } from '../accounts/expire-proposals.ts';
import { exportPayouts } from '../payments/wallet/payouts.ts';
import { cronSubject } from '../tasks/schedule.ts';
import { DAILY_ARCHIVE_PROCESS } from './daily.ts';

const REASON =
  'The database was restored. Look at the findings of the engine, because workers leave its machines alone until then.';
/** Accounts of one statement, and records of one transaction. */
const [ACCOUNTS_MAX, RECORDS_MAX] = [1_000, 1_000];

/** The things that a restore has stopped or left out. */
export interface Restored {
  /** The engines whose machines workers neither make nor destroy. */
  engines: string[];
  /** The hosts that get no order, because the lost time may have sold them. */
  hosts: string[];
  /** The hosts that were installed or wiped at the time of the backup. The lost time may have sold them, so nothing goes on there. */
  retired: string[];
  /** The payouts that count as exported, because the lost time may have paid them. */
  payouts: string[];
  /** The proposals that have ended, because the lost time may have approved them. */
  proposals: string[];
  /** The sources of deposit addresses that leave numbers out. */
  sources: string[];
  /** The accounts whose webhooks hear of it. */
  accounts: number;
}

/** Accepts a copy of the database. Nothing has happened since. @returns the engines that an earlier restore has stopped */
export async function noteMove(db: Database): Promise<string[]> {
  await linkWaiting(db);
  await db.transaction(async (tx) => {
    await ADOPT_DATABASE.all(tx);
    await signalTask(tx, cronSubject(DAILY_ARCHIVE_PROCESS));
  });
  return (await LIST_STOPPED_ENGINES.all(db)).map(({ driver }) => driver);
}

/** Makes a restored database safe to use. It can run again, and leaves out further numbers of deposit addresses then. */
export async function noteRestore(db: Database, actor: Actor): Promise<Restored> {
  // Before this writes events itself.
  const last = await LAST_CHANGE.first(db);
  const data = last ? { since: last.createdAt.toISOString() } : {};
  await linkWaiting(db);
  // These have transactions of their own. Their changes stay when this ends before the other one.
  const proposals = await expireProposals(db);
  const payouts = (await exportPayouts(db, actor)).map(({ id }) => id);
  return db.transaction(async (tx) => {
    await ADOPT_DATABASE.all(tx);
    const accounts = await tellAccounts(tx, data);
    const engines = (await STOP_ENGINES.all(tx, [REASON])).map(({ driver }) => driver);
    for (const engine of engines)
      await record(tx, OPERATOR_ACCOUNT, engine, { type: 'engine.braked', actor: SYSTEM, data: { reason: REASON } });
    const hosts = (await FIND_FREE_DEDICATED_HOSTS.all(tx)).map(({ name }) => name);
    for (const host of hosts) await moveHost(tx, host, 'DRAINING', actor);
    const unsettled = await LOCK_UNSETTLED_DEPLOYMENTS.all(tx);
    for (const one of unsettled) await moveDeployment(tx, one, 'RETIRED', { note: 'The database was restored.' });
    const retired = unsettled.map(({ box }) => box);
    const sources = (await LOSE_DEPOSITS.all(tx)).map(({ source }) => source);
    await record(tx, OPERATOR_ACCOUNT, 'database', { type: 'backup.restored', actor, data });
    // The folder of this machine has no archive yet.
    await signalTask(tx, cronSubject(DAILY_ARCHIVE_PROCESS));
    return { engines, hosts, retired, payouts, proposals, sources, accounts };
  });
}

/** The lines about engines that workers leave alone. */
export const stoppedLines = (engines: string[]): string[] =>
  engines.map((name) => `Workers leave the machines of the engine ${name} alone, until releaseBrake.`);

/** The lines about a restore, for the operator. */
export function linesOf({ engines, hosts, retired, payouts, proposals, sources, accounts }: Restored): string[] {
  return [
    ...stoppedLines(engines),
    ...hosts.map(
      (name) => `The free host ${name} drains. If no customer uses it, you can sell it again by activateHost.`,
    ),
    ...retired.map((name) => `The host ${name} was being installed or wiped. It is retired until declareWiped.`),
    ...payouts.map((id) => `The payout ${id} counts as exported. Sign it only if its chain does not show it.`),
    ...proposals.map(
      (id) =>
        `The proposal ${id} has expired. If it was not approved in the lost time, let an operator propose it again.`,
    ),
    ...sources.map((source) => `${LOST_NUMBERS.toLocaleString('en')} numbers of ${source} are left out.`),
    `Accounts whose webhooks hear of it (account.restored): ${accounts}.`,
    'Now follow docs/operate/restore.md. If you only moved the database, run: npm run restored -- --moved',
  ];
}

/** Links the last records, as a worker would. A proof much later would find that they wait for too long. */
async function linkWaiting(db: Database): Promise<void> {
  for (const link of [linkEntries, linkTransfers])
    while ((await db.transaction((tx) => link(tx, RECORDS_MAX))).count === RECORDS_MAX);
}

/** Tells the webhooks of all accounts that the service may have forgotten what it told them. @returns the number of accounts */
async function tellAccounts(tx: Transaction, data: object): Promise<number> {
  const accounts = await LIST_LISTENERS.all(tx);
  for (let from = 0; from < accounts.length; from += ACCOUNTS_MAX)
    await recordAll(
      tx,
      accounts.slice(from, from + ACCOUNTS_MAX).map(({ accountId }) => ({
        accountId,
        subject: accountId,
        type: 'account.restored',
        actor: SYSTEM,
        data: { ...data },
      })),
    );
  return accounts.length;
}
