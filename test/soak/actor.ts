/** One client at work: it does one thing after the other, with a pause after each. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, Refused } from './account.ts';
import type { Chance } from './chance.ts';
import type { Door } from './door.ts';
import type { Measurements } from './measurements.ts';

export interface Actor {
  name: string;
  account: Account;
  door: Door;
  /** Of the API processes. */
  urls: readonly string[];
  /** What any answer to the account may be refused with. */
  always: readonly string[];
  chance: Chance;
  measurements: Measurements;
  /** An Idempotency-Key that nobody has used. */
  newKey(): string;
}

export type Operation = (actor: Actor) => Promise<void>;
export type Weighed<T> = readonly (readonly [weight: number, thing: T])[];

export interface Shift {
  /** Half of it to one and a half of it is between two operations. */
  pauseMs: number;
  over: AbortSignal;
}

/** Does work that chance picks until the shift is over. */
export async function work<T extends { name: string; chance: Chance; measurements: Measurements }>(
  worker: T,
  operations: Weighed<(worker: T) => Promise<void>>,
  { pauseMs, over }: Shift,
): Promise<void> {
  const { chance, measurements, name } = worker;
  const pause = () => sleep(pauseMs * (0.5 + chance.next()), undefined, { signal: over }).catch(() => {});
  for (await pause(); !over.aborted; await pause())
    await chance
      .weigh(operations)(worker)
      .catch((error) => {
        if (!(error instanceof Refused))
          measurements.contradiction(`${name} could not go on: ${error?.stack ?? error}`);
      });
}
