/**
 * Machines of servers that an engine does not list. The worker asks the engine about each before it reports it missing. Its
 * answers can take long, so the circuit breaker opens before them, for unconfirmed machines.
 */
import type { Database } from '../../../entities/database/database.ts';
import { FIND_CHANGING_MACHINES, FIND_REPORTED_MACHINES, type FindingKind } from '../../../entities/servers/finding.ts';
import type { HardwareDriver, MachineKey, Observation } from '../drivers/driver.ts';
import type { ConnectedEngine } from '../engines.ts';
import type { ExpectedMachine } from './expected.ts';
import { type Found, nameOf, openBreaker } from './findings.ts';

/** The circuit breaker opens if this many machines vanish at once, and more than this part of all. */
const [MISSING_PART, MISSING_AT_LEAST] = [0.1, 2];
/** Machines about which the worker asks at once. */
const ASKED_AT_ONCE = 16;

/** A machine that an engine should have. */
export interface MissingMachine extends MachineKey {
  status: 'RUNNING' | 'STOPPED' | 'SUSPENDED';
}
/** A look at the machines of an engine. */
interface Look {
  of: ConnectedEngine;
  /** The machines that it should have and that differ, also the missing ones. */
  expected: ExpectedMachine[];
  /** The number of all machines that it should have. */
  count: number;
  /** The machines that it lists, by their names. */
  seen: ReadonlyMap<string, Observation>;
  /** The missing machines of earlier looks. */
  counted: readonly string[];
}

/**
 * Finds the machines that an engine does not list. It opens the circuit breaker if too many are missing for the first time, in
 * a transaction of its own. By a connection that was not checked, one is too many: it may lead to another engine.
 * @returns the missing machines by whether they are reported, and `counted` for the next look
 */
export async function guardDestroyer(db: Database, driver: string, { of, expected, count, seen, counted }: Look) {
  const { engine, isChecked, revision } = of;
  const isMissing = (machine: MachineKey) => !seen.has(nameOf(machine));
  const missing = expected.filter(isMissing);
  const { reported, unreported } = await splitByReport(db, driver, missing);
  const changing = isChecked ? [] : await FIND_CHANGING_MACHINES.all(db, [engine]);
  const all = count + changing.length;
  const hasNone = missing.length === count && changing.every(isMissing);
  // These may be absent for good reason. They count if the engine has none of the other machines.
  const doubtful = isChecked || !hasNone ? [] : [...reported, ...changing];
  const missed = [...unreported, ...doubtful];
  // The operator closes the circuit breaker for the machines that one connection lacks.
  const countedAs = (machine: MachineKey) => (isChecked ? nameOf(machine) : `${revision} ${nameOf(machine)}`);
  const news = missed.filter((machine) => !counted.includes(countedAs(machine))).length;
  const vanished = news >= MISSING_AT_LEAST && news > all * MISSING_PART;
  const isEmpty = news > 0 && seen.size === 0;
  if (vanished || isEmpty || (!isChecked && news))
    await db.transaction((tx) => openBreaker(tx, driver, `${news} of ${all} machines vanished at once.`));
  return { reported, unreported, counted: isChecked ? [] : missed.map(countedAs) };
}

async function splitByReport(db: Database, driver: string, missing: MissingMachine[]) {
  const open = await FIND_REPORTED_MACHINES.all(db, [driver, 'LOST' satisfies FindingKind]);
  const names = new Set(open.map(nameOf));
  const { reported = [], unreported = [] } = Object.groupBy(missing, (machine) =>
    names.has(nameOf(machine)) ? 'reported' : 'unreported',
  );
  return { reported, unreported };
}

/**
 * Asks the engine about each machine, in that order. Only the phase `absent` of that machine confirms that it is missing.
 * @param within ends the questions; the rest of the machines are `unasked`
 * @throws DriverError
 */
export async function confirmMissing(driver: HardwareDriver, missing: MissingMachine[], within: AbortSignal) {
  const waiting = [...missing];
  const [found, unasked]: [Found[], MissingMachine[]] = [[], []];
  const ask = async () => {
    for (let machine = waiting.shift(); machine; machine = waiting.shift()) {
      const { order, generation, status } = machine;
      const seen = await observed(driver, machine, within);
      if (!seen) unasked.push(machine);
      else if (seen.phase === 'absent')
        found.push({ kind: 'LOST', order, generation, detail: `The server is ${status}, and its machine is absent.` });
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, ask)).finally(() => waiting.splice(0));
  return { found, unasked };
}

/** @returns undefined if the time was too short for an answer */
async function observed(driver: HardwareDriver, { order, generation }: MachineKey, within: AbortSignal) {
  if (within.aborted) return undefined;
  return driver.observe({ order, generation }, within).catch((error: unknown) => {
    if (within.aborted) return undefined;
    throw error;
  });
}
