/** Reads the running service for the pages. One read serves all visitors for some seconds. */
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

/** How old a page may be. */
export const FRESH_SECONDS = 5;

/**
 * Returns the reads of the pages, as strangers may make them over REST.
 * @param now milliseconds since the epoch
 */
export function factsOf(operations: readonly Operation[], contextOf: ContextOf, now = Date.now): Facts {
  const read = <T>(name: string): (() => Promise<T>) => {
    const operation = operations.find((one) => one.name === name);
    if (!operation) return async () => Promise.reject(new ApiError('not_found'));
    const run = runner(operation, () => new ApiError('not_found'));
    let known: { answer: Promise<unknown>; until: number } | undefined;
    return () => {
      if (known && known.until > now()) return known.answer as Promise<T>;
      // The site calls as itself, so that its pages wait for no turn of a visitor.
      const caller = { viewer: null, requestId: 'req_site', userAgent: null, address: null };
      const answer = run({}, undefined, contextOf({ ...caller, signal: new AbortController().signal }));
      const made = { answer, until: now() + FRESH_SECONDS * 1000 };
      answer.catch(() => {
        if (known === made) known = undefined;
      });
      known = made;
      return answer as Promise<T>;
    };
  };
  return {
    catalog: read('GetCatalog'),
    coins: read('ListCoins'),
    status: read('GetStatus'),
    canary: read('GetCanary'),
  };
}
