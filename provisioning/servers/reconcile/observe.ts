/**
 * Observes the engines: compares their machines and hosts with those of servers. It reports differences as findings,
 * and deletes only machines that the worker gave up. It lets the worker turn off machines that came on against a
 * suspension or an open complaint. If many machines are missing at once, the engine is probably wrong. Then the circuit
 * breaker opens first, and the worker destroys no machine of that engine until the operator closes it.
 *
 * Machines of an unreachable engine are unknown, so that changes nothing.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { type Member, NOTE_ENGINE, NOTE_ENGINE_TROUBLE } from '../../../entities/servers/engine.ts';
import {
  areOrdersStopped,
  CLOSE_REMOVED,
  DELETE_RESOLVED,
  FIND_OWNED_MACHINES,
  FIND_REPORTED_MACHINES,
  FIND_UNCONFIRMED_MACHINES,
  FINDING_KINDS,
  type FindingKind,
  isBreakerOpen,
  LIST_EXPECTED_MACHINES,
  LOCK_FINDINGS,
  RESOLVE_REMOVED,
} from '../../../entities/servers/finding.ts';
import { FIND_HOSTS_OF_ENGINE } from '../../../entities/servers/host.ts';
import { REST_ADDRESSES } from '../../../entities/servers/ip-address.ts';
import { DELETE_OLD_SAMPLES } from '../../../entities/servers/metering/meter.ts';
import { LOCK_HOSTS_OF_ENGINES } from '../../../entities/servers/placement.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import {
  DriverError,
  type EngineReport,
  type HardwareDriver,
  type HostReport,
  isSoundKey,
  type MachineKey,
  type Observation,
} from '../drivers/driver.ts';
import type { ConnectedEngine, Engines } from '../engines.ts';
import { freeGenerations } from '../placement/allocate.ts';
import { wordsOf } from '../steps/trouble.ts';
import { serverTask } from '../task.ts';
import { evacuate } from './evacuation.ts';
import { differences, type ExpectedMachine, isAwake, stillDiffering } from './expected.ts';
import { type Found, nameOf, report, resolve, storable } from './findings.ts';
import { follow, movedMachines } from './follow.ts';
import { oversold, syncHostStates, untold } from './host-states.ts';
import { confirmMissing, guardDestroyer } from './missing.ts';

export const OBSERVER_PROCESS = 'observer';
const TICK_SECONDS = 60;
/** Seconds for all answers of an engine, and seconds of those for questions about missing machines. */
const [ANSWER_SECONDS, ASK_SECONDS] = [60, 40];
/** Seconds before a machine without a server is reported: a server may be about to claim it. */
const ORPHAN_SECONDS = 600;
const ORPHANS_MAX = 1000;
/** Seconds for which no order gets an address that a machine without a server had at the last look. */
const ADDRESS_REST_SECONDS = 3600;
/** Letters of a garbled mark in the trouble of its engine. */
const ODD_LENGTH_MAX = 64;
/** Days that resolved findings are kept. */
const FINDING_DAYS = 90;

/** The kinds of findings that each look finds again. */
const COMPARED = FINDING_KINDS.filter((kind) => kind !== 'STUCK' && kind !== 'TRAFFIC');

/** By machine without a server: when it was first seen, in milliseconds since the epoch. */
type Orphans = Record<string, number>;

/** A look leaves it to the next look at the same engine. */
interface Memory {
  /** The machines without a server. */
  orphans: Orphans;
  /** Missing machines that have counted, and of which no finding tells. */
  counted: readonly string[];
}

interface Look {
  of: ConnectedEngine;
  memory: Memory;
  signal: AbortSignal;
  /** The time of the database. */
  now: Date;
}

/** The result of a look. All looks commit each part together, in the order of the locks. */
interface Seen {
  memory: Memory;
  /** The machines that are on, and that the worker turns off again. */
  awake: ExpectedMachine[];
  /** The IP addresses of machines without a server. */
  addresses: readonly string[];
  findings?(tx: Transaction): Promise<void>;
  hosts?(tx: Transaction): Promise<void>;
  engine(tx: Transaction): Promise<{ isNews: boolean }[]>;
}

/** Asks all engines at once. Their looks commit together, so a silent one delays the others, by a minute at most. */
export const observerProcess = (
  db: Database,
  engines: Pick<Engines, 'all'>,
  onError: (error: unknown) => void,
): Process =>
  periodic({
    start: async ({ aborted, data, now }) => {
      const orphans = (data.orphans ?? {}) as Record<string, Orphans>;
      const counted = (data.counted ?? {}) as Record<string, string[]>;
      const signal = AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_SECONDS * 1000)]);
      const all = await engines.all();
      const lookAt = async (of: ConnectedEngine): Promise<Seen> => {
        const memory = { orphans: orphans[of.name] ?? {}, counted: counted[of.name] ?? [] };
        return observe(db, { of, memory, signal, now: now() }).catch((error: unknown) => {
          if (!(error instanceof DriverError)) onError(error);
          return {
            memory,
            awake: [],
            addresses: [],
            engine: (tx) => NOTE_ENGINE_TROUBLE.all(tx, [of.name, of.revision, wordsOf(error)]),
          };
        });
      };
      const looks = await Promise.all(all.map(lookAt));
      const awake = looks.flatMap((look) => look.awake);
      const kept = <K extends keyof Memory>(key: K) =>
        Object.fromEntries(looks.map(({ memory }, index) => [all[index]!.name, memory[key]]));
      aborted.throwIfAborted();
      await DELETE_OLD_SAMPLES.all(db);
      return hop('start', {
        afterSeconds: TICK_SECONDS,
        data: { orphans: kept('orphans'), counted: kept('counted') },
        commit: async (tx) => {
          const names = all.map(({ name }) => name);
          await CLOSE_REMOVED.all(tx);
          await LOCK_FINDINGS.all(tx, [names]);
          for (const look of looks) await look.findings?.(tx);
          await RESOLVE_REMOVED.all(tx);
          await DELETE_RESOLVED.all(tx, [FINDING_DAYS]);
          await LOCK_HOSTS_OF_ENGINES.all(tx, [names]);
          for (const look of looks) await look.hosts?.(tx);
          await REST_ADDRESSES.all(tx, [looks.flatMap(({ addresses }) => addresses), ADDRESS_REST_SECONDS]);
          const news: string[] = [];
          for (const [index, { engine }] of looks.entries())
            if ((await engine(tx))[0]?.isNews) news.push(names[index]!);
          for (const { order, ...machine } of awake.toSorted((a, b) => (a.order < b.order ? -1 : 1)))
            await startTask(tx, serverTask({ orderNumber: order, ...machine }));
          const told = { type: 'engine.updated', actor: SYSTEM, data: { looked: true } } as const;
          for (const name of news) await record(tx, OPERATOR_ACCOUNT, name, told);
        },
      });
    },
  });

/** Observes one engine, and opens its circuit breaker if necessary. @throws DriverError */
async function observe(db: Database, { of, memory, signal, now }: Look): Promise<Seen> {
  const { kinds, engine } = of;
  const driver = await of.driver();
  const before = await LIST_EXPECTED_MACHINES.all(db, [kinds, engine]);
  const { sound: listed = [], odd = [] } = Object.groupBy(await driver.list(signal), (one) =>
    isSoundKey(one) ? 'sound' : 'odd',
  );
  const seen = new Map(listed.map((one) => [nameOf(one), one]));
  const { expected, count } = await stillDiffering(db, of, before, seen);
  const missing = await guardDestroyer(db, driver.name, { of, expected, count, seen, counted: memory.counted });

  const within = AbortSignal.any([signal, AbortSignal.timeout(ASK_SECONDS * 1000)]);
  const { found: absent, unasked } = await confirmMissing(driver, [...missing.unreported, ...missing.reported], within);
  const hosts = await driver.capacity(signal);
  const misplaced = await follow(db, driver.name, movedMachines(expected, seen, hosts));
  const staying = of.isChecked ? await evacuate(db, driver, seen, hosts) : [];
  const differing = expected.flatMap((machine) => differences(machine, seen.get(nameOf(machine))));
  const sold = await FIND_HOSTS_OF_ENGINE.all(db, [driver.name]);
  const known = new Set(before.map(nameOf));
  const unowned = await findUnowned(
    db,
    engine,
    listed.filter((one) => !known.has(nameOf(one))),
  );
  const orphans = orphansOf(unowned, memory.orphans, now.getTime());
  const found: Found[] = [
    ...misplaced,
    ...staying,
    ...oversold(sold, hosts, listed),
    ...absent,
    ...differing,
    ...(await unconfirmed(db, of, differing)),
    // A restored database gets no orders yet, so no server is about to claim the machine.
    ...((await areOrdersStopped(db, driver.name)) ? unowned : old(unowned, orphans, now.getTime())),
  ];
  const lost = unasked.map(({ order, generation }): Found => ({ kind: 'LOST', order, generation, detail: '' }));
  const still = [...lost, ...untold(sold, hosts)];
  const gone = of.isChecked ? await removedSince(db, driver, signal) : [];
  let trouble = odd[0]
    ? storable(`Machines with odd marks do not count, such as ${nameOf(odd[0]).slice(0, ODD_LENGTH_MAX)}.`)
    : null;
  const about = await driver.about?.(signal).catch((error: unknown) => {
    trouble = wordsOf(error);
    return undefined;
  });
  return {
    memory: { orphans, counted: [...missing.counted, ...unasked.map(nameOf)] },
    addresses: unowned.flatMap((one) => seen.get(nameOf(one))?.addresses ?? []),
    awake: expected.filter((machine) => machine.asleep && isAwake(seen.get(nameOf(machine)))),
    findings: async (tx) => {
      await report(tx, driver.name, found);
      await resolve(tx, driver.name, COMPARED, [...found, ...still]);
      await resolve(tx, driver.name, ['STUCK'], [], gone);
    },
    hosts: async (tx) => {
      const absent = gone.map(({ order: orderNumber, generation }) => ({ orderNumber, generation }));
      await freeGenerations(tx, absent);
      await syncHostStates(tx, driver.name, hosts);
    },
    engine: (tx) => NOTE_ENGINE.all(tx, [...noteOf(of, hosts, about), trouble]),
  };
}

/** 0 for an odd size, as for an unknown one. */
const countOf = (size: number): number => (Number.isInteger(size) && size >= 0 && size < 2 ** 31 ? size : 0);

/** The parameters that note what an engine told. */
function noteOf({ name, revision }: ConnectedEngine, hosts: HostReport[], about: EngineReport | undefined): unknown[] {
  const members = hosts.map(({ name, state, size: { vcpus, memoryMb, diskGb } }): Member => {
    const size = { vcpus: countOf(vcpus), memoryMb: countOf(memoryMb), diskGb: countOf(diskGb) };
    return { name: storable(name), state, ...size };
  });
  const { product = null, version = null, images } = about ?? {};
  const told = [product, version && storable(version), JSON.stringify(members), images?.map(storable) ?? null];
  return [name, revision, ...told];
}

/** When each machine without a server was first seen. */
const orphansOf = (unowned: Found[], known: Orphans, nowMs: number): Orphans =>
  Object.fromEntries(unowned.slice(0, ORPHANS_MAX).map((one) => [nameOf(one), known[nameOf(one)] ?? nowMs]));

/** The orphans that were seen for long enough. */
const old = (unowned: Found[], orphans: Orphans, nowMs: number): Found[] =>
  unowned.filter((one) => nowMs - (orphans[nameOf(one)] ?? nowMs) >= ORPHAN_SECONDS * 1000);

/** Machines with our mark that belong to no server. Given-up generations belong to their server. */
async function findUnowned(db: Database, engine: string | null, listed: Observation[]): Promise<Found[]> {
  const owned = await FIND_OWNED_MACHINES.all(db, [listed.map(({ order }) => order)]);
  const servers = new Map(owned.map((one) => [one.order, one]));
  return listed.flatMap(({ order, generation, phase, host, addresses }) => {
    const server = servers.get(order);
    const isHere = server?.engine === engine;
    if (isHere && generation <= server.generation) return [];
    const reason =
      server && !isHere
        ? `The machine of that server is on the engine ${server.engine ?? 'of the environment'}.`
        : 'The machine belongs to no server.';
    const its = addresses?.length ? ` Its addresses are ${addresses.join(' and ')}.` : '';
    const detail = `${reason} ${phase}${host ? ` on ${host}` : ''}.${its}`;
    return [{ kind: 'ORPHAN' satisfies FindingKind, order, generation, detail }];
  });
}

/** Machines of suspended servers that do not follow, without those that are reported for their power already. */
async function unconfirmed(
  db: Database,
  { kinds, engine }: ConnectedEngine,
  differing: readonly Found[],
): Promise<Found[]> {
  const told = new Set(differing.filter(({ kind }) => kind === 'POWER').map(nameOf));
  const detail = 'The server is SUSPENDED, and the worker could not turn its machine off or on yet.';
  return (await FIND_UNCONFIRMED_MACHINES.all(db, [kinds, engine]))
    .filter((machine) => !told.has(nameOf(machine)))
    .map((machine) => ({ kind: 'POWER', ...machine, detail }));
}

/** Removes given-up machines. @returns those whose absence the engine confirms by now */
async function removedSince(db: Database, driver: HardwareDriver, signal: AbortSignal): Promise<MachineKey[]> {
  const stuck = await FIND_REPORTED_MACHINES.all(db, [driver.name, 'STUCK' satisfies FindingKind]);
  if (await isBreakerOpen(db, driver.name)) return [];
  const isGone = (key: MachineKey) =>
    driver.destroy(key, signal).then(
      ({ phase }) => phase === 'absent',
      (error: unknown) => {
        if (error instanceof DriverError || signal.aborted) return false;
        throw error;
      },
    );
  const answers = await Promise.all(stuck.map(isGone));
  return stuck.filter((_, index) => answers[index]);
}
