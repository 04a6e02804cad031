/**
 * The hash chain of the ledger. Transfers stay for ever, so the chain begins with the first one. Its head is in every signed
 * text of heads.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import { type Found, proveLinks } from '../history/chain-proof.ts';
import { type AuditLink, type Chained, LEDGER_CHAIN, type Linked, link, lockChains } from '../history/hash-chain.ts';
import { Transfer } from './ledger.ts';

/** Returns a transfer as the chain sees it. */
function chainedTransfer(transfer: Transfer): Chained {
  const { id, accountId, kind, debit, credit, amountMicros, externalKey, orderNumber, serviceCode } = transfer;
  const { description, periodFrom, periodTo, credentialId, limitedBy, createdAt } = transfer;
  return {
    ...{ accountId: LEDGER_CHAIN, id, createdAt },
    values: [
      ...[id, accountId, kind, debit, credit, String(amountMicros), externalKey, orderNumber, serviceCode],
      ...[description, periodFrom, periodTo, credentialId, limitedBy, createdAt],
    ],
  };
}

/** The oldest transfers without a link, at most $1. */
const FIND_UNLINKED = statement(Transfer.columns)`
  select ${columnsOf(Transfer)} from audit_unlinked join transfer on id = entry_id order by id limit $1`;

/** Adds the oldest transfers without a link to the chain of the ledger, at most so many. */
export async function linkTransfers(tx: Transaction, most: number): Promise<Linked> {
  await lockChains(tx);
  return link(tx, (await FIND_UNLINKED.all(tx, [most])).map(chainedTransfer));
}

const FIND_TRANSFERS = statement(Transfer.columns)`
  select ${columnsOf(Transfer)} from transfer where id = any($1)`;
/** Transfers that are neither in the chain nor wait for their link, at most $1. */
const OUTSIDE = statement({ id: column.key() })`
  select id from transfer
    where not exists (select from audit_link where entry_id = id) and not exists (select from audit_unlinked where entry_id = id)
  limit $1`;

/** A signed head of the ledger. */
export interface LedgerHead {
  number: bigint;
  signedAt: Date;
}

const HOUR_MS = 3_600_000;

/**
 * Proves that every transfer is in the chain as it was written. A transfer that no signature covers must be younger than
 * the signature: the worker links all transfers before it signs.
 * @param heads the signed heads
 * @returns the number of transfers in the chain
 */
export async function proveLedger(db: Queryable, heads: readonly LedgerHead[], found: Found): Promise<number> {
  const rising = heads.toSorted((one, other) => Number(one.number - other.number));
  let passed = 0;
  let signedAt = Number.NEGATIVE_INFINITY;
  const faultOf = ({ number }: AuditLink, { createdAt }: Chained): string | undefined => {
    for (; passed < rising.length && rising[passed]!.number < number; passed++)
      signedAt = Math.max(signedAt, +rising[passed]!.signedAt);
    if (+createdAt >= signedAt - HOUR_MS) return undefined;
    return `The transfer has the time ${createdAt.toISOString()}, but a later signature lacks it.`;
  };
  const read = async (ids: string[]) => (await FIND_TRANSFERS.all(db, [ids])).map(chainedTransfer);
  const transfers = await proveLinks(db, { isLedger: true, read, hasAnchors: false, faultOf }, found);
  for (const { id } of await OUTSIDE.all(db, [OUTSIDE_MAX]))
    found({ accountId: LEDGER_CHAIN, entryId: id, detail: 'The transfer is in no chain.' });
  return transfers;
}
const OUTSIDE_MAX = 50;
