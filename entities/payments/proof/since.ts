/**
 * The proof of the books since a mark. The balances are those of the mark and the transfers since. The chain tells which
 * transfers these are, so `audit-proof.ts` has to prove it, too. Old transfers and most rows beside the ledger are not read.
 */
import type { Queryable } from '../../database/transaction.ts';
import { CHECKS } from './checks.ts';
import { check, type Fault } from '../books.ts';
import { type Mark, takeBack } from './mark.ts';

export interface BooksSince {
  /** The transfers since the mark. */
  transfers: number;
  /** In the order of the checks. */
  faults: Fault[];
}

/** Proves the balances, and does the checks that read few rows. */
export async function proveBooksSince(db: Queryable, mark: Mark): Promise<BooksSince> {
  const { digest, moved, transfers } = await takeBack(db, mark.number);
  const totals = new Map(mark.totals);
  for (const [name, micros] of moved) totals.set(name, (totals.get(name) ?? 0n) + micros);
  const isOther = digest !== mark.balances && {
    table: 'balance',
    detail: 'The balances are not those of the last whole proof and the transfers since.',
    ...{ rows: [], count: 0 },
  };
  const few = CHECKS.filter(({ readsAll }) => !readsAll);
  return { transfers, faults: [...(isOther ? [isOther] : []), ...(await check(db, few, totals))] };
}
