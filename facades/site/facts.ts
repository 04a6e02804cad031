/** Reads the running service for the pages. One page serves all visitors for some seconds. */
import { ApiError } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';
import { type ContextOf, runner } from '../compile/run.ts';
import type { Catalog, Coin } from './home.ts';
import type { Canary, Status } from './transparency.ts';

export interface Facts {
  catalog(): Promise<Catalog>;
  coins(): Promise<{ data: Coin[] }>;
  status(): Promise<Status>;
  canary(): Promise<Canary>;
}

/** Returns the reads of the pages, as strangers may make them over REST. */
export function factsOf(operations: readonly Operation[], contextOf: ContextOf): Facts {
  const read = <T>(name: string): (() => Promise<T>) => {
    const operation = operations.find((one) => one.name === name);
    if (!operation) return async () => Promise.reject(new ApiError('not_found'));
    const run = runner(operation, () => new ApiError('not_found'));
    // The site calls as itself, so that its pages wait for no turn of a visitor.
    const caller = { viewer: null, requestId: 'req_site', userAgent: null, address: null };
    return () => run({}, undefined, contextOf({ ...caller, signal: new AbortController().signal })) as Promise<T>;
  };
  return {
    catalog: read('GetCatalog'),
    coins: read('ListCoins'),
    status: read('GetStatus'),
    canary: read('GetCanary'),
  };
}

/** The greatest age of a page about the running service. */
export const FRESH_SECONDS = 5;

/** Makes a text again when it is old. All visitors wait for the same one, and no failure is kept. */
export function fresh(make: () => Promise<string>): () => Promise<string> {
  let known: { text: Promise<string>; until: number } | undefined;
  return () => {
    if (known && known.until > Date.now()) return known.text;
    const made = { text: make(), until: Date.now() + FRESH_SECONDS * 1000 };
    made.text.catch(() => {
      if (known === made) known = undefined;
    });
    known = made;
    return made.text;
  };
}
