/** One client at work. It runs one operation after the other, with a pause after each. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, Refused } from './account.ts';
import type { ApiClient } from './api-client.ts';
import type { Chance } from './chance.ts';
import type { Measurements } from './measurements.ts';

export interface Actor {
  name: string;
  account: Account;
  api: ApiClient;
  /** The addresses of the API processes. */
  urls: readonly string[];
  /** Error codes that are legitimate for every call of this account. */
  always: readonly string[];
  chance: Chance;
  measurements: Measurements;
  /** Returns an unused Idempotency-Key. */
  newKey(): string;
}

export type Operation = (actor: Actor) => Promise<void>;
export type Weighed<T> = readonly (readonly [weight: number, thing: T])[];

export interface Shift {
  /** The mean pause between two operations; each pause is within half of it. */
  pauseMs: number;
  over: AbortSignal;
}

/** Runs operations, picked by chance, until the shift is over. */
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
