/**
 * The open matters of the operator: one list of all that somebody should look at. No table keeps them. Each read derives them
 * from other tables, so a matter goes with its cause.
 */
import { FIND_REFUSED_CASES } from '../entities/accounts/abuse-case.ts';
import { COUNT_UNREAD_OF_OTHERS, LIST_UNREAD_OF_PAYERS } from '../entities/accounts/message.ts';
import { STOCK_LOW } from '../entities/catalog.ts';
import { usdFromMicros } from '../entities/money.ts';
import { LAST_BACKUP, LIST_UNDECIDED_PAYMENTS } from '../entities/open-matters.ts';
import { LIST_OPEN_PROPOSALS } from '../entities/proposal.ts';
import { HAS_REAL_ENGINE } from '../entities/servers/engine.ts';
import { type FindingKind, LIST_STOPPED_ENGINES } from '../entities/servers/finding.ts';
import { LIST_OFFLINE_HOSTS } from '../entities/servers/host.ts';
import { LIST_MANUAL_JOBS } from '../entities/servers/manual-job.ts';
import { LATEST_CANARY } from '../entities/transparency/transparency.ts';
import { listCases } from './accounts/cases.ts';
import { listStock } from './catalog/stock.ts';
import type { Context } from './context.ts';
import { listGateways } from './payments/gateways.ts';
import { listBreakers, listFindings } from './servers/findings.ts';
import { listTasks } from './tasks.ts';

/** The most urgent first. */
export const SEVERITIES = ['CRITICAL', 'WARNING', 'NOTICE'] as const;
export const MATTER_KINDS = [
  'BACKUP',
  'BRAKE',
  'CANARY',
  'CAPACITY',
  'CASE',
  'FINDING',
  'GATEWAY',
  'HOST',
  'MANUAL_JOB',
  'MESSAGE',
  'PAYMENT_HELD',
  'PAYMENT_UNMATCHED',
  'PROPOSAL',
  'TASK',
] as const;

export interface Matter {
  kind: (typeof MATTER_KINDS)[number];
  /** The id, order number or name of the thing. */
  subject: string;
  /** Null: the service does not keep it. */
  since: Date | null;
  severity: (typeof SEVERITIES)[number];
  /** A sentence for the operator. */
  nextStep: string;
}
/** Reads the matters of one kind, at most so many. */
type Source = (context: Context, limit: number) => Promise<Matter[]>;

const brakes: Source = async (context) =>
  (await listBreakers(context)).map(({ driver, createdAt, stopsOrders }) => ({
    ...{ kind: 'BRAKE', subject: driver, since: createdAt, severity: 'CRITICAL' },
    nextStep: stopsOrders
      ? 'The database was restored: look at the findings of the engine, and then let workers go on by releaseBrake.'
      : 'Look at the engine, and then let workers destroy its machines again by releaseBrake.',
  }));

const ON_FINDING: Record<FindingKind, string> = {
  ORPHAN: 'Look at the machine on its engine, and remove it if no server needs it.',
  LOST: 'Look for the machine on its engine, and delete the server by deleteServer if it is gone.',
  POWER: 'Turn the machine on or off on its engine, as the status of its server says.',
  SIZE: 'Give the machine the size of its tier on the engine.',
  IMAGE: 'Ask the customer to rebuild the server, because the machine has another image.',
  MISPLACED: 'Add the host of the machine by addHost, or make room on it.',
  CAPACITY: 'Correct the capacity of the host by updateHost.',
  INCOMPLETE: 'Look at the machine on its engine, and remove it if no change needs it.',
  STUCK: 'Look at the machine on its engine: the worker cannot remove it.',
  TRAFFIC: 'Look at the traffic of the server, and suspend its account by suspendAccount if it attacks others.',
};
const findings: Source = async (context, limit) =>
  (await listFindings(context, limit)).map(({ kind, orderNumber, firstSeenAt }) => ({
    ...{ kind: 'FINDING', subject: orderNumber, since: firstSeenAt },
    severity: kind === 'LOST' ? 'CRITICAL' : 'WARNING',
    nextStep: ON_FINDING[kind],
  }));

const tasks: Source = async (context, limit) =>
  (await listTasks(context, limit, 'STUCK')).map(({ subject, state, createdAt }) => ({
    ...{ kind: 'TASK', subject },
    // A periodic task is as old as the service.
    since: subject.startsWith('cron:') ? null : createdAt,
    ...(state === 'DEAD'
      ? { severity: 'CRITICAL', nextStep: 'Read its error in tasks, and call retryTask or giveUpTask.' }
      : { severity: 'WARNING', nextStep: 'Read its error in tasks, and remove the cause before the worker gives up.' }),
  }));

const payments: Source = async ({ db }, limit) =>
  (await LIST_UNDECIDED_PAYMENTS.all(db, [limit])).map(({ id, since, held }) => ({
    ...{ kind: held ? 'PAYMENT_HELD' : 'PAYMENT_UNMATCHED', subject: id, since, severity: 'WARNING' },
    nextStep: 'Look at the payment on its chain, and then call assignPayment, requestReturn or writeOffPayment.',
  }));

const proposals: Source = async ({ db }, limit) =>
  (await LIST_OPEN_PROPOSALS.all(db, [limit]))
    .filter(({ expiresAt }) => expiresAt.getTime() > Date.now())
    .map(({ id, createdAt, proposerName, amountMicros, accountId, expiresAt }) => ({
      ...{ kind: 'PROPOSAL', subject: id, since: createdAt, severity: 'WARNING' },
      nextStep:
        `${proposerName} wants to move ${usdFromMicros(amountMicros)} USD of ${accountId}: look at it in proposals, ` +
        `and call approveProposal or refuseProposal before ${expiresAt.toISOString()}.`,
    }));

const gateways: Source = async (context) =>
  (await listGateways(context))
    .filter(({ reachable, warning }) => !reachable || warning)
    .map(({ name, reachable, warning }) => ({
      ...{ kind: 'GATEWAY', subject: name, since: null },
      ...(reachable
        ? { severity: 'WARNING', nextStep: `Solve this problem of the gateway: ${warning}` }
        : { severity: 'CRITICAL', nextStep: 'Bring the gateway back, because it does not answer.' }),
    }));

const hosts: Source = async ({ db }, limit) =>
  (await LIST_OFFLINE_HOSTS.all(db, [limit])).map(({ name, trouble, troubleAt }) => ({
    ...{ kind: 'HOST', subject: name, since: troubleAt, severity: 'WARNING' },
    nextStep: `Bring the host back, correct it by updateHost, or drain it by drainHost. ${trouble ?? ''}`.trim(),
  }));

/** The operator hears of a canary so many days before it expires. */
const CANARY_MS = 7 * 24 * 3_600_000;
/** Simulated machines have no customers, who would read a canary. */
const NO_CANARY: Matter = {
  ...{ kind: 'CANARY', subject: 'none', since: null, severity: 'NOTICE' },
  nextStep: 'Publish the first canary by publishCanary. Until then, visitors read that there is none.',
};
const canary: Source = async ({ db }) => {
  const latest = await LATEST_CANARY.first(db);
  if (!latest) return (await HAS_REAL_ENGINE.first(db))!.isReal ? [NO_CANARY] : [];
  const leftMs = latest.expiresAt.getTime() - Date.now();
  if (leftMs > CANARY_MS) return [];
  const expired = leftMs <= 0;
  return [
    {
      ...{ kind: 'CANARY', subject: latest.id, severity: expired ? 'CRITICAL' : 'WARNING' },
      since: expired ? latest.expiresAt : new Date(latest.expiresAt.getTime() - CANARY_MS),
      nextStep: `Publish the next canary by publishCanary${expired ? '' : ` before ${latest.expiresAt.toISOString()}`}.`,
    },
  ];
};

const backup: Source = async ({ db, backupDaysMax }) => {
  const last = await LAST_BACKUP.first(db);
  const staleAt = last && last.at.getTime() + backupDaysMax * 24 * 3_600_000;
  if (!staleAt || staleAt > Date.now()) return [];
  const known = last.isNoted
    ? `The last backup is of ${last.at.toISOString()}.`
    : 'The service has heard of no backup yet.';
  return [
    {
      ...{ kind: 'BACKUP', subject: 'database', since: new Date(staleAt), severity: 'WARNING' },
      nextStep: `${known} Set ARCHIVE_DIR, or back the database up otherwise and let your script tell each backup by noteBackup.`,
    },
  ];
};

const capacity: Source = async (context) => {
  // A restore stops all orders until the operator has looked at the machines.
  if ((await LIST_STOPPED_ENGINES.all(context.db)).length) return [];
  return (await listStock(context))
    .filter(({ total, free, sold }) => sold && free < Math.min(STOCK_LOW, total))
    .map(({ regionCode, serviceCode, free }) => ({
      ...{ kind: 'CAPACITY', subject: `${regionCode}/${serviceCode}`, since: null },
      severity: free ? 'NOTICE' : 'WARNING',
      nextStep: `Customers can order ${free} more: add hosts or addresses, or raise the total by setStock.`,
    }));
};

const jobs: Source = async ({ db }, limit) =>
  (await LIST_MANUAL_JOBS.all(db, [limit]))
    .filter(({ state }) => state === 'OPEN')
    .map(({ id, createdAt }) => ({
      ...{ kind: 'MANUAL_JOB', subject: id, since: createdAt, severity: 'WARNING' },
      nextStep: 'Do the job of manualJobs by hand, and close it by completeManualJob or failManualJob.',
    }));

const messages: Source = async ({ db }, limit) =>
  (await LIST_UNREAD_OF_PAYERS.all(db, [limit])).map(({ id, createdAt }) => ({
    ...{ kind: 'MESSAGE', subject: id, since: createdAt, severity: 'NOTICE' },
    nextStep: 'Read it in messages, answer by sendMessage, and call markMessageRead.',
  }));

const cases: Source = async (context, limit) => {
  const open = await listCases(context, { state: 'OPEN' }, limit);
  const rows = await FIND_REFUSED_CASES.all(context.db, [open.map(({ id }) => id)]);
  const refused = new Set(rows.map(({ id }) => id));
  return open.map(({ id, orderNumber, createdAt, deadline }) => {
    const isOverdue = deadline.getTime() <= Date.now();
    const calm = `Look whether the customer solves it before ${deadline.toISOString()}, and then call closeCase.`;
    const overdue = 'The deadline is over: act by takeMeasure, or close the case by closeCase.';
    const isOn = `The engine could not turn ${orderNumber} off: read troubles, and then call takeMeasure again.`;
    return {
      ...{ kind: 'CASE', subject: id, since: createdAt },
      severity: isOverdue || refused.has(id) ? 'CRITICAL' : 'WARNING',
      nextStep: refused.has(id) ? isOn : isOverdue ? overdue : calm,
    };
  });
};

/** The subject of the matter of all messages of accounts that never paid. */
const UNPAID = 'unpaid';
/** Free accounts are easy to make, so all their messages are one matter. They hide no message of a customer. */
const unpaidMessages: Source = async ({ db }) => {
  const { messages: count, accounts, since } = (await COUNT_UNREAD_OF_OTHERS.first(db))!;
  if (!count) return [];
  return [
    {
      ...{ kind: 'MESSAGE', subject: UNPAID, since, severity: 'NOTICE' },
      nextStep:
        `Read the ${count} messages of ${accounts} accounts that never paid in messages(paid: false), ` +
        'and call markMessagesRead for each account.',
    },
  ];
};

const SOURCES = [
  brakes,
  findings,
  tasks,
  payments,
  proposals,
  gateways,
  hosts,
  canary,
  backup,
  capacity,
  jobs,
  messages,
  unpaidMessages,
  cases,
];

/**
 * Returns the open matters, the most urgent first. Among those, the ones of unknown age come first, because they are few. Then come
 * the oldest, and at last the messages of accounts that never paid. Each kind keeps its share of the places, so none hides
 * another. It asks each gateway.
 */
export async function listOpenMatters(context: Context, limit: number): Promise<Matter[]> {
  const rank = ({ severity }: Matter) => SEVERITIES.indexOf(severity);
  const age = ({ since, subject }: Matter) => (subject === UNPAID ? Number.MAX_SAFE_INTEGER : (since?.getTime() ?? 0));
  const byUrgency = (a: Matter, b: Matter) => rank(a) - rank(b) || age(a) - age(b);
  const matters = (await Promise.all(SOURCES.map((read) => read(context, limit)))).flat().sort(byUrgency);
  const share = Math.floor(limit / MATTER_KINDS.length);
  const kept = Object.values(Object.groupBy(matters, ({ kind }) => kind)).flatMap((its) => its.slice(0, share));
  const others = matters.filter((matter) => !kept.includes(matter));
  return [...kept, ...others].slice(0, limit).sort(byUrgency);
}
