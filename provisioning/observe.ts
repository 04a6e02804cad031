/**
 * Watches the engines: compares the machines that they have with those that servers should have, and their hosts with
 * ours. What differs is reported, and nothing is ever deleted for it. Where many machines are missing at once, the engine
 * is more likely to be wrong than they are to be gone: that pulls the brake, and nothing of that engine is destroyed until
 * the operator releases it.
 *
 * What an engine that cannot be asked has is unknown, so that changes nothing.
 */
import type { Database, Transaction } from '../entities/database.ts';
import type { FindingKind } from '../entities/finding.ts';
import { periodic } from './schedule.ts';
import { freeGeneration } from './servers/allocate.ts';
import { DriverError, type HardwareDriver, type MachineKey, type Observation } from './servers/drivers/driver.ts';
import { type Found, pullBrake, report, resolve } from './servers/findings.ts';
import { followHosts } from './servers/follow-hosts.ts';
import { hop, type Process } from './tasks.ts';

export const OBSERVER_PROCESS = 'observer';
const TICK_SECONDS = 60;
/** How long an engine has to tell what it has. */
const ANSWER_SECONDS = 60;
/** More than this part of an engine's machines, and at least so many, are not lost at once: then the brake is pulled. */
const [LOST_PART, LOST_AT_LEAST] = [0.1, 2];

/** So long nobody asks whose a machine is. */
const ORPHAN_SECONDS = 600;
const ORPHANS_MAX = 1000;
/** How long it is known what was found. */
const FINDING_DAYS = 90;

/** Machines that no server has, and since when that is known; milliseconds since the epoch. */
type Orphans = Record<string, number>;

interface Look {
  driver: HardwareDriver;
  /** The kinds of servers that it makes. */
  kinds: string[];
  known: Orphans;
  /** Is filled with those that there are now. */
  orphans: Orphans;
  signal: AbortSignal;
}

interface Believed extends MachineKey {
  status: 'RUNNING' | 'STOPPED' | 'SUSPENDED';
}
type Drivers = Record<'VPS' | 'DEDICATED', HardwareDriver>;

export const observerProcess = (db: Database, drivers: Drivers, onError: (error: unknown) => void): Process =>
  periodic({
    start: async ({ aborted, data }) => {
      const known = (data.orphans ?? {}) as Orphans;
      const orphans: Orphans = {};
      const commits: ((tx: Transaction) => Promise<void>)[] = [];
      for (const driver of new Set(Object.values(drivers))) {
        const kinds = Object.entries(drivers).flatMap(([kind, one]) => (one === driver ? kind : []));
        const signal = AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_SECONDS * 1000)]);
        const commit = await observe(db, { driver, kinds, known, orphans, signal }).catch((error: unknown) => {
          if (!(error instanceof DriverError)) onError(error);
        });
        aborted.throwIfAborted();
        if (commit) commits.push(commit);
      }
      return hop('start', {
        afterSeconds: TICK_SECONDS,
        data: { orphans },
        commit: async (tx) => {
          for (const commit of commits) await commit(tx);
          await tx.query(`delete from finding where resolved_at < now() - $1 * interval '1 day'`, [FINDING_DAYS]);
        },
      });
    },
  });

/** @returns what is to be written of it @throws DriverError */
async function observe(db: Database, { driver, kinds, known, orphans, signal }: Look) {
  // What servers have is read before the engine is asked, and what they do not have after it: so neither a machine that is
  // being made nor one that is being removed is taken for something else.
  const believed = await db.query<Believed>(BELIEVED, [kinds]);
  const listed = await driver.list(signal);
  const hosts = await driver.capacity(signal);
  const seen = new Map(listed.map((one) => [nameOf(one), one]));
  const missing = believed.filter((machine) => !seen.has(nameOf(machine)));
  const told = await db.query<{ name: string }>(
    `select order_number || '.' || generation as name from finding where driver = $1 and kind = 'LOST' and resolved_at is null`,
    [driver.name],
  );
  const news = missing.filter((machine) => !told.some(({ name }) => name === nameOf(machine)));
  const vanished = news.length >= LOST_AT_LEAST && news.length > believed.length * LOST_PART;
  const isEmpty = news.length > 0 && listed.length === 0;
  const reason = `${news.length} of ${believed.length} machines vanished at once.`;
  const found: Found[] = [
    ...(await lost(driver, missing, signal)),
    ...believed.flatMap((machine) => powerOf(machine, seen.get(nameOf(machine)))),
    ...old(await unowned(db, listed), known, orphans),
  ];
  const gone = await removedSince(db, driver, signal);
  return async (tx: Transaction) => {
    if (vanished || isEmpty) await pullBrake(tx, driver.name, reason);
    for (const one of found) await report(tx, driver.name, one);
    await resolve(tx, driver.name, ['ORPHAN', 'LOST', 'POWER'], found);
    for (const { order, generation } of gone) await freeGeneration(tx, order, generation);
    await resolve(tx, driver.name, ['STUCK'], [], gone);
    await followHosts(tx, driver.name, hosts);
  };
}

const nameOf = ({ order, generation }: MachineKey) => `${order}.${generation}`;

/** The machines of settled servers. */
const BELIEVED = `
  select order_number as "order", generation, status from server
  where status in ('RUNNING', 'STOPPED', 'SUSPENDED') and change is null and kind = any($1)`;

/** Only what the engine says of that very machine makes a loss; `unknown` does not. */
async function lost(driver: HardwareDriver, missing: Believed[], signal: AbortSignal): Promise<Found[]> {
  const found: Found[] = [];
  for (const { order, generation, status } of missing) {
    const seen = await driver.observe({ order, generation }, signal);
    if (seen.phase !== 'absent') continue;
    found.push({ kind: 'LOST', order, generation, detail: `The server is ${status}, and its machine is absent.` });
  }
  return found;
}

function powerOf({ order, generation, status }: Believed, seen: Observation | undefined): Found[] {
  if (!seen?.power || seen.phase !== 'present') return [];
  const differs = status === 'RUNNING' ? seen.power === 'off' : seen.power === 'on';
  const detail = `The server is ${status}, and its machine is ${seen.power}.`;
  return differs ? [{ kind: 'POWER', order, generation, detail }] : [];
}

/** Those that were seen long enough; since when all were is noted. */
function old(found: Found[], known: Orphans, noted: Orphans): Found[] {
  for (const one of found.slice(0, ORPHANS_MAX)) noted[nameOf(one)] = known[nameOf(one)] ?? Date.now();
  return found.filter((one) => Date.now() - (noted[nameOf(one)] ?? Date.now()) >= ORPHAN_SECONDS * 1000);
}

/** Machines with our mark of which no server knows; those that were given up are known. */
async function unowned(db: Database, listed: Observation[]): Promise<Found[]> {
  const owned = await db.query<{ order: string; generation: number }>(
    `select order_number as "order", generation from server
      where order_number = any($1) and status <> 'DELETED' and (status <> 'FAILED' or ipv4 is not null)`,
    [listed.map(({ order }) => order)],
  );
  const generations = new Map(owned.map(({ order, generation }) => [order, generation]));
  return listed
    .filter(({ order, generation }) => generation > (generations.get(order) ?? 0))
    .map(({ order, generation, phase, host }) => ({
      ...{ kind: 'ORPHAN' satisfies FindingKind, order, generation },
      detail: `No server has it. ${phase}${host ? ` on ${host}` : ''}`,
    }));
}

/** Machines that were given up, and that are confirmed absent by now. */
async function removedSince(db: Database, driver: HardwareDriver, signal: AbortSignal): Promise<MachineKey[]> {
  const stuck = await db.query<MachineKey>(
    `select order_number as "order", generation from finding where driver = $1 and kind = 'STUCK' and resolved_at is null`,
    [driver.name],
  );
  const gone: MachineKey[] = [];
  for (const key of stuck) if ((await driver.observe(key, signal)).phase === 'absent') gone.push(key);
  return gone;
}
