/**
 * The ledger: append-only transfers of micro-USD, each from one ledger account (debit) to another (credit), so the
 * books balance by construction. A customer has two ledger accounts, `available` and `held`; their sums are kept in
 * `balance`, under CHECKs that refuse a negative one. System accounts are summed when asked for, never kept: a row
 * that every order changes would cost three quarters of the throughput.
 *
 * This file is the only writer of `transfer` and `balance`.
 */

import {
  bigint,
  defaulting,
  entity,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  timestamp,
} from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import { ApiError } from '../errors.ts';
import { newId } from '../ids.ts';
import { exactJson } from '../json.ts';

/** `hold` and `capture` are an order, `release` gives a hold back, `refund` gives captured money back. */
export const TRANSFER_KINDS = [
  'topup',
  'bonus',
  'hold',
  'capture',
  'release',
  'renewal',
  'refund',
  'adjustment',
] as const;
export type TransferKind = (typeof TRANSFER_KINDS)[number];

export const Transfer = entity(
  'transfer',
  {
    id: key(),
    /** The customer whom it concerns. */
    accountId: text(),
    kind: oneOf(...TRANSFER_KINDS),
    debit: text(),
    credit: text(),
    amountMicros: bigint(),
    /** Unique: a transfer that is posted twice exists once. */
    externalKey: text(),
    orderNumber: nullable(text()),
    serviceCode: nullable(text()),
    description: text(),
    periodFrom: nullable(timestamp()),
    periodTo: nullable(timestamp()),
    /** The API key that spent it, if one did. */
    credentialId: nullable(text()),
    createdAt: now(),
  },
  [
    { name: 'transfer_external_key', columns: ['externalKey'], unique: true },
    { name: 'transfer_account', columns: ['accountId', 'id'] },
    { name: 'transfer_credential', columns: ['credentialId', 'createdAt'], where: 'credential_id is not null' },
  ],
);
export type Transfer = RowOf<typeof Transfer>;

export const Balance = entity('balance', {
  accountId: key(),
  availableMicros: defaulting(bigint(), 0),
  heldMicros: defaulting(bigint(), 0),
  updatedAt: now(),
});
export type Balance = RowOf<typeof Balance>;

export const available = (accountId: string): string => `available:${accountId}`;
export const held = (accountId: string): string => `held:${accountId}`;
/** What machines have earned. */
export const REVENUE = 'revenue';
/** What bonuses have cost. */
export const BONUS = 'bonus';
/** What the operator gave or took by hand. */
export const ADJUSTMENT = 'adjustment';
/** What has come, or was taken back, and whose it is has yet to be decided. */
export const SUSPENSE = 'suspense';
/** What came in by a network of coins. */
export const gateway = (network: string): string => `gateway:${network}`;

/**
 * The lock of accounts. A transaction takes it before all else (lock-order.ts) where it counts, spends or ends something of
 * them, so thirty requests at once are counted one after the other.
 */
export const lockAccount = (tx: Transaction, ...accountIds: string[]): Promise<unknown> =>
  tx.query(
    'select from balance where account_id = any($1) order by account_id for update',
    [accountIds],
    'lock account',
  );

/** What a customer can spend, in micro-USD; nobody else changes it until the end of the transaction. */
export async function lockAvailable(tx: Transaction, accountId: string): Promise<bigint> {
  const [balance] = await tx.query<{ micros: bigint }>(
    'select available_micros as micros from balance where account_id = $1 for update',
    [accountId],
  );
  return balance!.micros;
}

export interface Posting {
  kind: TransferKind;
  debit: string;
  credit: string;
  /** At least 0; a posting of nothing is left out. */
  amountMicros: bigint;
  externalKey: string;
  orderNumber?: string;
  serviceCode?: string;
  description: string;
  periodFrom?: Date;
  periodTo?: Date;
  /** The API key that spends it. */
  credentialId?: string;
}

export const openBalance = (tx: Queryable, accountId: string): Promise<unknown> =>
  tx.query('insert into balance (account_id) values ($1)', [accountId]);

/**
 * Posts transfers of one customer. Those whose external key is known are left out, so posting again changes nothing.
 * @returns how many were new
 * @throws ApiError insufficient_balance if one of the customer's accounts would become negative
 * @throws Error if the customer has no balance, or a posting names an account of another one
 */
export const post = (tx: Transaction, accountId: string, postings: Posting[]): Promise<number> =>
  postAll(
    tx,
    postings.map((posting) => ({ accountId, ...posting })),
  );

const NOT_NEGATIVE = new Set(['balance_available_not_negative', 'balance_held_not_negative']);

/** As `post`, for transfers of many customers in one statement. */
export async function postAll(tx: Transaction, postings: (Posting & { accountId: string })[]): Promise<number> {
  const transfers = postings
    .filter(({ amountMicros }) => amountMicros > 0n)
    .map((posting) => ({ id: newId('xfr'), ...posting }));
  if (!transfers.length) return 0;
  for (const { accountId, debit, credit } of transfers) {
    const foreign = [debit, credit].find((name) => isForeign(name, accountId));
    if (foreign) throw new Error(`A posting of ${accountId} names ${foreign}.`);
  }
  try {
    const posted = await tx.query<{ accountId: string; kept: boolean }>(POST, [exactJson(transfers)], 'post');
    const unkept = posted.find(({ kept }) => !kept);
    if (unkept) throw new Error(`${unkept.accountId} has no balance.`);
    for (const accountId of new Set(posted.map((row) => row.accountId)))
      tx.changed({ kind: 'balance', accountId, id: accountId });
    return posted.length;
  } catch (error) {
    const { constraint = '' } = error as { constraint?: string };
    if (NOT_NEGATIVE.has(constraint)) throw new ApiError('insufficient_balance');
    throw error;
  }
}
const isForeign = (name: string, accountId: string) =>
  /^(available|held):/.test(name) && name !== available(accountId) && name !== held(accountId);

const POST = `
  with given as (
      select * from jsonb_to_recordset($1) as given(id text, "accountId" text, kind text, debit text, credit text, "amountMicros" bigint,
        "externalKey" text, "orderNumber" text, "serviceCode" text, description text, "periodFrom" timestamptz, "periodTo" timestamptz,
        "credentialId" text)),
    locked as (select from balance where account_id in (select "accountId" from given) order by account_id for update),
    posted as (
      insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key,
        order_number, service_code, description, period_from, period_to, credential_id)
      select id, "accountId", kind, debit, credit, "amountMicros", "externalKey", "orderNumber", "serviceCode", description, "periodFrom", "periodTo", "credentialId"
      from given where (select count(*) from locked) >= 0 -- the balances are locked before anything is written
      on conflict (external_key) do nothing
      returning account_id, debit, credit, amount_micros),
    legs as (
      select account_id, debit as name, -amount_micros as micros from posted union all select account_id, credit, amount_micros from posted),
    sums as (
      select account_id, coalesce(sum(micros) filter (where name = 'available:' || account_id), 0)::bigint as available,
        coalesce(sum(micros) filter (where name = 'held:' || account_id), 0)::bigint as held
      from legs group by account_id),
    kept as (
      update balance set updated_at = now(), available_micros = available_micros + available, held_micros = held_micros + held
      from sums where balance.account_id = sums.account_id returning balance.account_id)
  select account_id, account_id in (select account_id from kept) as kept from posted`;

/**
 * The CTEs of a hold, as the head of a longer statement: `paid` has one row (account_id) if the balance sufficed,
 * and none if not. Takes the parameters $1 account, $2 micro-USD, $3 transfer id, $4 order number, $5 service code;
 * `credential` is an expression for the API key that spends it, and `allowed` for whether the account may.
 */
export const holdSql = (credential: string, allowed = 'true'): string => `
  paid as (
    update balance set available_micros = available_micros - $2, held_micros = held_micros + $2, updated_at = now()
    where account_id = $1 and available_micros >= $2 and ${allowed} returning account_id),
  hold as (
    insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, order_number, service_code, description, credential_id)
    select $3, $1, 'hold', 'available:' || $1, 'held:' || $1, $2, 'hold:' || $4, $4, $5, 'Order of ' || $5, ${credential} from paid)`;

/**
 * What an API key has spent in the calendar month (UTC) that is now, in micro-USD: what it took from the balance,
 * without what was given back because an order or a resize came to nothing. Renewals name no key. Exact under the lock of the account.
 */
export async function spentThisMonth(tx: Queryable, credentialId: string): Promise<bigint> {
  const [spent] = await tx.query<{ micros: bigint }>(
    `select coalesce(sum(spent.amount_micros - coalesce(released.amount_micros, 0)), 0)::bigint as micros
    from transfer spent left join transfer released
      on spent.kind = 'hold' and released.external_key = 'release:' || split_part(spent.external_key, ':', 2)
    where spent.credential_id = $1 and spent.created_at >= date_trunc('month', now(), 'UTC')
      and spent.debit = 'available:' || spent.account_id`,
    [credentialId],
  );
  return spent!.micros;
}

/** One account whose kept balance is not the sum of its transfers. */
export interface Mismatch {
  accountId: string;
  keptMicros: bigint;
  summedMicros: bigint;
}
export interface Books {
  /** Whether every kept balance is the sum of its transfers. */
  balanced: boolean;
  transfers: number;
  firstMismatch: Mismatch | null;
  /** What all ledger accounts sum up to, by name; those of customers together. */
  totals: { name: string; micros: bigint }[];
}

/** Proves that the books balance, or names the first account that does not. Reads every transfer. */
export async function verifyBooks(db: Queryable): Promise<Books> {
  const [mismatch] = await db.query<Mismatch>(`
    with summed as (
      select substr(name, strpos(name, ':') + 1) as account_id,
        sum(micros) filter (where name like 'available:%') as available, sum(micros) filter (where name like 'held:%') as held
      from (${LEGS}) legs where name ~ '^(available|held):' group by 1),
    both_sides as (
      select account_id, coalesce(available_micros, 0) as available_kept, coalesce(held_micros, 0) as held_kept,
        coalesce(available, 0) as available_summed, coalesce(held, 0) as held_summed
      from balance full join summed using (account_id))
    select account_id, (available_kept + held_kept)::bigint as kept_micros,
      (available_summed + held_summed)::bigint as summed_micros
    from both_sides where available_kept <> available_summed or held_kept <> held_summed
    order by account_id limit 1`);
  const totals = await db.query<{ name: string; micros: bigint }>(`
    select case when name ~ '^(available|held):' then split_part(name, ':', 1) else name end as name, sum(micros)::bigint as micros
    from (${LEGS}) legs group by 1 order by 1`);
  const [counted] = await db.query<{ transfers: number }>('select count(*)::int as transfers from transfer');
  return { balanced: !mismatch, transfers: counted!.transfers, firstMismatch: mismatch ?? null, totals };
}
const LEGS =
  'select debit as name, -amount_micros as micros from transfer union all select credit, amount_micros from transfer';
