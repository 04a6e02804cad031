/**
 * Machines of servers that an engine does not list. Each is asked for before it is called missing; that takes as long as it
 * takes, so the circuit breaker opens before it, for what is missing, and not for what was confirmed.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { HardwareDriver, MachineKey } from '../drivers/driver.ts';
import { type Found, openBreaker } from './findings.ts';

/** More than this part of an engine's machines, and at least so many, do not vanish at once: then the circuit breaker opens. */
const [MISSING_PART, MISSING_AT_LEAST] = [0.1, 2];
const ASKED_AT_ONCE = 16;

export interface Believed extends MachineKey {
  status: 'RUNNING' | 'STOPPED' | 'SUSPENDED';
}

export const nameOf = ({ order, generation }: MachineKey): string => `${order}.${generation}`;

/** The machines of settled servers of some kinds. */
export const believedOf = (db: Database, kinds: string[]): Promise<Believed[]> => db.query<Believed>(BELIEVED, [kinds]);
const BELIEVED = `
  select order_number as "order", generation, status from server
  where status in ('RUNNING', 'STOPPED', 'SUSPENDED') and change is null and kind = any($1)`;

/** Those that the operator was told of, and the others. */
export async function sortOut(db: Database, driver: string, missing: Believed[]) {
  const open = await db.query<{ name: string }>(
    `select order_number || '.' || generation as name from finding where driver = $1 and kind = 'LOST' and resolved_at is null`,
    [driver],
  );
  const names = new Set(open.map(({ name }) => name));
  const told = missing.filter((machine) => names.has(nameOf(machine)));
  return { told, untold: missing.filter((machine) => !names.has(nameOf(machine))) };
}

/** How many machines an engine should have, how many it lists, and how many are missing that were not before. */
interface Counts {
  believed: number;
  listed: number;
  news: number;
}

/** Stops the destroyer where too many are missing at once, in a transaction of its own. */
export async function guardDestroyer(db: Database, driver: string, { believed, listed, news }: Counts): Promise<void> {
  const vanished = news >= MISSING_AT_LEAST && news > believed * MISSING_PART;
  const isEmpty = news > 0 && listed === 0;
  if (!vanished && !isEmpty) return;
  await db.transaction((tx) => openBreaker(tx, driver, `${news} of ${believed} machines vanished at once.`));
}

/**
 * Asks for each of them, in that order. Only what the engine says of that very machine makes a loss; `unknown` does not.
 * @param within those that could not be asked for in this time are `unasked`
 * @throws DriverError
 */
export async function confirmMissing(driver: HardwareDriver, missing: Believed[], within: AbortSignal) {
  const waiting = [...missing];
  const [found, unasked]: [Found[], Believed[]] = [[], []];
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

/** @returns undefined where there was no time for an answer */
async function observed(driver: HardwareDriver, { order, generation }: MachineKey, within: AbortSignal) {
  if (within.aborted) return undefined;
  return driver.observe({ order, generation }, within).catch((error: unknown) => {
    if (within.aborted) return undefined;
    throw error;
  });
}
