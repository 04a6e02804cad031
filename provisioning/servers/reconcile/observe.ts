/**
 * Watches the engines: compares the machines that they have with those that servers should have, and their hosts with
 * ours. What differs is reported, and nothing is ever deleted for it. Where many machines are missing at once, the engine
 * is more likely to be wrong than they are to be gone: that opens the circuit breaker, before anything else is asked, and nothing of
 * that engine is destroyed until the operator releases it.
 *
 * What an engine that cannot be asked has is unknown, so that changes nothing.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { FindingKind } from '../../../entities/servers/finding.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { DriverError, type HardwareDriver, type MachineKey, type Observation } from '../drivers/driver.ts';
import { freeGenerations, lockHostsOf } from '../placement/allocate.ts';
import { type Found, report, resolve } from './findings.ts';
import { syncHostStates } from './host-states.ts';
import { type Believed, believedOf, confirmMissing, guardDestroyer, nameOf, sortOut } from './missing.ts';

export const OBSERVER_PROCESS = 'observer';
const TICK_SECONDS = 60;
/** How long an engine has to tell what it has, and how long of that it is asked for what is missing. */
const [ANSWER_SECONDS, ASK_SECONDS] = [60, 40];

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
  /** Names of machines that were missing the last time, when there was no time to ask for them; and those of now. */
  heard: ReadonlySet<string>;
  unasked: string[];
  signal: AbortSignal;
}

type Drivers = Record<'VPS' | 'DEDICATED', HardwareDriver>;

export const observerProcess = (db: Database, drivers: Drivers, onError: (error: unknown) => void): Process =>
  periodic({
    start: async ({ aborted, data }) => {
      const known = (data.orphans ?? {}) as Orphans;
      const heard = new Set((data.unasked ?? []) as string[]);
      const [orphans, unasked]: [Orphans, string[]] = [{}, []];
      const commits: ((tx: Transaction) => Promise<void>)[] = [];
      for (const driver of new Set(Object.values(drivers))) {
        const kinds = Object.entries(drivers).flatMap(([kind, one]) => (one === driver ? kind : []));
        const signal = AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_SECONDS * 1000)]);
        const look = { driver, kinds, known, orphans, heard, unasked, signal };
        const commit = await observe(db, look).catch((error: unknown) => {
          if (!(error instanceof DriverError)) onError(error);
          Object.assign(orphans, known);
          unasked.push(...heard);
        });
        aborted.throwIfAborted();
        if (commit) commits.push(commit);
      }
      return hop('start', {
        afterSeconds: TICK_SECONDS,
        data: { orphans, unasked },
        commit: async (tx) => {
          for (const commit of commits) await commit(tx);
          await tx.query(`delete from finding where resolved_at < now() - $1 * interval '1 day'`, [FINDING_DAYS]);
        },
      });
    },
  });

/** opens the circuit breaker where it has to be. @returns what else is to be written @throws DriverError */
async function observe(db: Database, look: Look) {
  const { driver, kinds, known, orphans, heard, signal } = look;
  // What servers have is read before and after the engine is asked, so nothing is taken for something else that is being
  // made, changed or removed meanwhile.
  const before = await believedOf(db, kinds);
  const listed = await driver.list(signal);
  const after = new Map((await believedOf(db, kinds)).map((machine) => [nameOf(machine), machine.status]));
  const believed = before.filter((machine) => after.get(nameOf(machine)) === machine.status);
  const seen = new Map(listed.map((one) => [nameOf(one), one]));
  const missing = believed.filter((machine) => !seen.has(nameOf(machine)));
  const { untold, told } = await sortOut(db, driver.name, missing);
  const news = untold.filter((machine) => !heard.has(nameOf(machine))).length;
  await guardDestroyer(db, driver.name, { believed: believed.length, listed: listed.length, news });

  const within = AbortSignal.any([signal, AbortSignal.timeout(ASK_SECONDS * 1000)]);
  const { found: absent, unasked } = await confirmMissing(driver, [...untold, ...told], within);
  look.unasked.push(...unasked.map(nameOf));
  const hosts = await driver.capacity(signal);
  const found: Found[] = [
    ...absent,
    ...believed.flatMap((machine) => powerOf(machine, seen.get(nameOf(machine)))),
    ...old(await unowned(db, listed), known, orphans),
  ];
  const still: Found[] = unasked.map(({ order, generation }) => ({ kind: 'LOST', order, generation, detail: '' }));
  const gone = await removedSince(db, driver, signal);
  return async (tx: Transaction) => {
    await report(tx, driver.name, found);
    await resolve(tx, driver.name, ['ORPHAN', 'LOST', 'POWER'], [...found, ...still]);
    await resolve(tx, driver.name, ['STUCK'], [], gone);
    await lockHostsOf(tx, driver.name);
    await freeGenerations(
      tx,
      gone.map(({ order: orderNumber, generation }) => ({ orderNumber, generation })),
    );
    await syncHostStates(tx, driver.name, hosts);
  };
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
      kind: 'ORPHAN' satisfies FindingKind,
      order,
      generation,
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
