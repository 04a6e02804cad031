/**
 * Counts what machines use, once a minute, and sets the speed of those that have used up their traffic. Each kind of server has
 * a process of its own, which asks all its engines at once.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { FIND_REPORTED_MACHINES, type FindingKind, LOCK_FINDINGS } from '../../../entities/servers/finding.ts';
import { COUNT_READINGS } from '../../../entities/servers/metering/meter.ts';
import { FIND_DUE_TRAFFIC, FIND_WRONG_SPEEDS } from '../../../entities/servers/metering/traffic.ts';
import type { Server } from '../../../entities/servers/server.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { INT_MAX, isSoundKey, isStorable, type Reading } from '../drivers/driver.ts';
import type { ConnectedEngine, Engines } from '../engines.ts';
import { type Found, nameOf, report, resolve } from '../reconcile/findings.ts';
import { chargeTraffic } from './traffic.ts';

export const METER_PROCESSES: Record<Server['kind'], string> = { VPS: 'meter-vps', DEDICATED: 'meter-dedicated' };
const TICK_SECONDS = 60;
/** Seconds for the answer with all counters, and for all changes of speed. */
const ANSWER_SECONDS = 40;
/** Servers of one transaction. */
const CHUNK = 200;

export interface MeterOptions {
  db: Database;
  kind: Server['kind'];
  engines: Pick<Engines, 'all'>;
  /** Packets a second of one machine from which on the operator hears of it. */
  packetsPerSecondMax: number;
  log: (line: string) => void;
}

/** The readings of one engine. */
interface Answer {
  of: ConnectedEngine;
  readings: Reading[];
}

export const meterProcess = ({ db, kind, engines, packetsPerSecondMax, log }: MeterOptions): Process => {
  const ours = async () => (await engines.all()).filter(({ kinds }) => kinds.includes(kind));
  /** The names of engines whose counters did not come in the last minute. The log has each of them once. */
  const silent = new Set<string>();
  return periodic({
    start: async ({ aborted, now }) => {
      const at = now();
      const ask = async (of: ConnectedEngine): Promise<Answer[]> => {
        const readings = await (await of.driver()).meter?.(within(aborted));
        silent.delete(of.name);
        return readings ? [{ of, readings: readings.filter(isSound).map(withoutOdd) }] : [];
      };
      const skip = (of: ConnectedEngine) => (error: unknown) => {
        aborted.throwIfAborted();
        if (!silent.has(of.name)) log(`The engine ${of.name} is not metered, until its counters come again. ${error}`);
        silent.add(of.name);
        return [];
      };
      const answers = (await Promise.all((await ours()).map((of) => ask(of).catch(skip(of))))).flat();
      if (!answers.length) return hop('start', { afterSeconds: TICK_SECONDS });
      return hop('charge', { commit: (tx) => count(tx, { kind, packetsPerSecondMax }, answers, at) });
    },
    charge: async () => {
      const due = await FIND_DUE_TRAFFIC.all(db, [CHUNK, kind]);
      return hop(due.length < CHUNK ? 'limit' : 'charge', { commit: (tx) => chargeTraffic(tx, due) });
    },
    limit: async ({ aborted }) => {
      const signal = within(aborted);
      const setAll = async ({ engine, driver }: ConnectedEngine) => {
        for (const { portMbps, ...key } of await FIND_WRONG_SPEEDS.all(db, [kind, engine])) {
          const set = async () => (await driver()).setSpeed?.(key, portMbps, signal);
          // The next minute tries again.
          await set().catch((error) => {
            aborted.throwIfAborted();
            log(`${key.order}: its speed stays, instead of ${portMbps} Mbit/s. ${error.message}`);
          });
          if (signal.aborted) break;
        }
      };
      await Promise.all((await ours()).map(setAll));
      return hop('start', { afterSeconds: TICK_SECONDS });
    },
  });
};

const within = (aborted: AbortSignal) => AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_SECONDS * 1000)]);

/** Whether the database can store the names of a reading. A single other one would fail those of all engines. */
const isSound = ({ epoch, ...key }: Reading): boolean => isSoundKey(key) && isStorable(epoch);

/** A reading without counters that the database cannot store. Root in a virtual machine can make them up. */
function withoutOdd(reading: Reading): Reading {
  const { order, generation, epoch, portMbps, isDisguised, isUnread, ...counters } = reading;
  const sound = (most: number) => (value: number | null) =>
    value !== null && Number.isSafeInteger(value) && value >= 0 && value <= most ? value : null;
  const kept = Object.entries(counters).map(([name, value]) => [name, sound(Number.MAX_SAFE_INTEGER)(value)]);
  return { ...reading, ...Object.fromEntries(kept), portMbps: sound(INT_MAX)(portMbps) };
}

const HIDDEN = 'The machine is on, and the engine does not see its network card. The service cannot count its traffic.';
const UNREAD =
  'Root in the machine has made its state too long for the engine to show. The service cannot count its traffic.';
const DISGUISED =
  'Several cards of the machine pass for its network card. The service counts the traffic of all of them.';

/** Counts the readings, and reports machines that abuse the network. */
async function count(
  tx: Transaction,
  { kind, packetsPerSecondMax }: Pick<MeterOptions, 'kind' | 'packetsPerSecondMax'>,
  answers: Answer[],
  at: Date,
): Promise<void> {
  const given = answers.flatMap(({ of: { engine }, readings }) =>
    readings.filter(({ isUnread }) => !isUnread).map((one) => ({ ...one, engine })),
  );
  const counted = await COUNT_READINGS.all(tx, [JSON.stringify(given), at, kind]);
  await LOCK_FINDINGS.all(tx, [answers.map(({ of }) => of.name)]);
  for (const { of, readings } of answers) {
    const ofEngine = counted.filter(({ engine }) => engine === of.engine);
    const disguised = new Set(readings.filter((one) => one.isDisguised).map(nameOf));
    const found = ofEngine.flatMap(({ order, generation, packetsPerSecond, isHidden }): Found[] => {
      const details = [
        isHidden && HIDDEN,
        disguised.has(nameOf({ order, generation })) && DISGUISED,
        packetsPerSecond > packetsPerSecondMax && `The machine sent ${packetsPerSecond} packets a second.`,
      ].filter(Boolean);
      return details.length ? [{ kind: 'TRAFFIC', order, generation, detail: details.join(' ') }] : [];
    });
    for (const { order, generation, isUnread } of readings)
      if (isUnread) found.push({ kind: 'TRAFFIC', order, generation, detail: UNREAD });
    await report(tx, of.name, found);
    // Machines that are on and did not count belong to servers of the other kind.
    const [read, quiet] = [new Set(readings.map(nameOf)), new Set(ofEngine.map(nameOf))];
    const open = await FIND_REPORTED_MACHINES.all(tx, [of.name, 'TRAFFIC' satisfies FindingKind]);
    for (const one of found) quiet.delete(nameOf(one));
    const over = open.filter((one) => quiet.has(nameOf(one)) || !read.has(nameOf(one)));
    await resolve(tx, of.name, ['TRAFFIC'], [], over);
  }
}
