/**
 * The hash chain of the ledger. Transfers stay for ever, so the chain begins with the first one. Its head is in every signed
 * text of heads.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import { fitOf } from '../history/chain-fit.ts';
import { type Chains, type Found, proveLinks } from '../history/chain-proof.ts';
import { type Chained, jsonTimeSql, LEDGER_CHAIN, type Linked, link, lockChains } from '../history/hash-chain.ts';
import { Transfer } from './ledger.ts';

/** Returns a transfer as the chain sees it. */
export function chainedTransfer(transfer: Transfer): Chained {
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

/** The links of the chain $1 after the number $2 and up to $3, with their transfers. */
export const FIT_TRANSFERS = fitOf({
  links: 'account_id = $1 and number > $2 and number <= $3',
  record: 'transfer',
  chain: `'${LEDGER_CHAIN}'`,
  isAnchor: 'false',
  json: `array_to_json(array[record.id, record.account_id, kind, debit, credit, amount_micros::text, external_key, order_number,
    service_code, description, ${jsonTimeSql('period_from')}, ${jsonTimeSql('period_to')}, credential_id, limited_by,
    ${jsonTimeSql('created_at')}])::text`,
});

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

/** The transfers that do not wait for their link. */
const COUNT_TRANSFERS = statement({ count: column.int() })`
  select ((select count(*) from transfer) - (
    select count(*) from audit_unlinked join transfer on id = entry_id
      where not exists (select from audit_link where audit_link.entry_id = id)))::int as count`;

/** A signed head of the ledger. */
export interface LedgerHead {
  number: bigint;
  signedAt: Date;
}

const HOUR_MS = 3_600_000;
/** The greatest number of a link. */
const ENDLESS = 2n ** 63n - 1n;

/**
 * Proves that every transfer is in the chain as it was written. A transfer that no signature covers must be younger than
 * the signature: the worker links all transfers before it signs.
 * @param heads the signed heads
 * @returns the number of transfers in the chain
 */
export async function proveLedger(db: Queryable, heads: readonly LedgerHead[], found: Found): Promise<number> {
  const transfers = await proveLedgerAfter(db, 0n, heads, found);
  if ((await COUNT_TRANSFERS.first(db))!.count === transfers) return transfers;
  for (const { id } of await OUTSIDE.all(db, [OUTSIDE_MAX]))
    found({ accountId: LEDGER_CHAIN, entryId: id, detail: 'The transfer is in no chain.' });
  return transfers;
}

/** The same for the links after this number. It does not look for transfers beside the chain. */
export function proveLedgerAfter(
  db: Queryable,
  number: bigint,
  heads: readonly LedgerHead[],
  found: Found,
): Promise<number> {
  const rising = heads.toSorted((one, other) => Number(one.number - other.number));
  const chains: Chains = {
    ...{ isLedger: true, hasAnchors: false, after: number },
    // A step ends at a signed head, so the same signatures lack all of its links.
    fit: async (accountId, after) => {
      const until = rising.find((head) => head.number > after)?.number ?? ENDLESS;
      return (await FIT_TRANSFERS.first(db, [accountId, after, until]))!;
    },
    read: async (ids) => (await FIND_TRANSFERS.all(db, [ids])).map(chainedTransfer),
    earliest: (after) =>
      Math.max(...rising.filter((head) => head.number <= after).map(({ signedAt }) => +signedAt)) - HOUR_MS,
  };
  return proveLinks(db, chains, found);
}
const OUTSIDE_MAX = 50;
