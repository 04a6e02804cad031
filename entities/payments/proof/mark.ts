/**
 * The mark of a whole proof. It has the head of the ledger that the proof covered, and the digest of all balances at that
 * transfer. A later proof reads only what came since. SECRET_KEY seals the mark. An older mark, put back, covers less.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import * as column from '../../database/column.ts';
import { statement } from '../../database/statement.ts';
import { entity, nullable } from '../../database/table.ts';
import type { Queryable } from '../../database/transaction.ts';
import { LEDGER_CHAIN } from '../../history/hash-chain.ts';
import type { Vault } from '../../secrets.ts';
import { type Books, OF_CUSTOMER } from '../books.ts';

export interface Mark {
  /** The number of the last transfer in the chain of the ledger; 0: there was none. */
  number: bigint;
  /** The hash of its link, in hexadecimal. */
  hash: string;
  provenAt: Date;
  /** The digest of the latest signed text. Null: there was none. */
  signature: string | null;
  /** The digest of the balances of customers after that transfer. */
  balances: string;
  /** The sums of the other ledger accounts after that transfer. */
  totals: Map<string, bigint>;
}

entity('proof_mark', { id: column.key(), text: column.text(), mac: column.bytes() });

const FIND_MARK = statement({ text: column.text(), mac: column.bytes() })`select text, mac from proof_mark`;
const KEEP_MARK = statement({})`
  insert into proof_mark (id, text, mac) values ('last', $1, $2)
    on conflict (id) do update set text = excluded.text, mac = excluded.mac`;
const FIND_HEAD = statement({ number: column.bigint(), hash: column.text(), at: column.timestamp() })`
  select coalesce(number, 0) as number, coalesce(encode(hash, 'hex'), '') as hash, now()::timestamptz(3) as at
    from (select) as one left join (
      select number, hash from audit_link where account_id = '${LEDGER_CHAIN}' order by number desc limit 1) as head on true`;

const MOVED = {
  /** Null: the row has the digest. */
  name: nullable(column.text()),
  micros: column.bigint(),
  digest: nullable(column.text()),
  /** The transfers since. */
  transfers: column.int(),
};
/**
 * Takes the transfers after the number $1 of the chain back from the balances of customers. So it does with those that wait for
 * their link. It gives the digest of the remaining balances. For the other ledger accounts it gives the sums of these transfers.
 */
const TAKE_BACK = statement(MOVED, { replans: true })`
  with since as materialized (
      select debit, credit, amount_micros from audit_link join transfer on id = entry_id
        where audit_link.account_id = '${LEDGER_CHAIN}' and number > $1
      union all
      select debit, credit, amount_micros from audit_unlinked join transfer on id = entry_id
        where not exists (select from audit_link where audit_link.entry_id = id)),
    moved as materialized (
      select name, sum(micros) as micros from (
        select debit as name, -amount_micros as micros from since union all select credit, amount_micros from since) as legs
      group by 1),
    remaining as (
      select name, sum(micros) as micros from (
        select part || ':' || account_id as name, kept as micros
          from balance cross join lateral (values ('available', available_micros), ('held', held_micros), ('owed', -owed_micros),
            ('withheld', withheld_micros)) as parts(part, kept) where kept <> 0
        union all select name, -micros from moved where ${OF_CUSTOMER}) as sides
      group by 1 having sum(micros) <> 0)
  select null as name, 0::bigint as micros, encode(sha256(convert_to(
      coalesce(string_agg(name || ' ' || micros || E'\\n', '' order by name collate "C"), ''), 'UTF8')), 'hex') as digest,
      (select count(*)::int from since) as transfers from remaining
  union all select name, micros::bigint, null, 0 from moved where not ${OF_CUSTOMER}`;

/** The balances after a transfer. */
interface Past {
  digest: string;
  /** The sums of the later transfers by the ledger accounts that are no customer's. */
  moved: Map<string, bigint>;
  /** The number of later transfers. */
  transfers: number;
}

/** Finds what the balances were at the transfer with this number in the chain. */
export async function takeBack(db: Queryable, number: bigint): Promise<Past> {
  const rows = await TAKE_BACK.all(db, [number]);
  const { digest, transfers } = rows.find(({ name }) => name === null)!;
  const moved = rows.flatMap(({ name, micros }) => (name === null ? [] : [[name, micros] as const]));
  return { digest: digest!, moved: new Map(moved), transfers };
}

/** Makes the mark of a whole proof without faults, in the transaction of the proof. */
export async function markOf(db: Queryable, { totals }: Books, signature: string | null): Promise<Mark> {
  const { number, hash, at: provenAt } = (await FIND_HEAD.first(db))!;
  const { digest, moved } = await takeBack(db, number);
  const kept = totals.filter(({ name }) => !/^(available|held|owed|withheld)$/.test(name));
  return {
    ...{ number, hash, provenAt, signature, balances: digest },
    totals: new Map(kept.map(({ name, micros }) => [name, micros - (moved.get(name) ?? 0n)])),
  };
}

const macOf = (secret: Buffer, text: string): Buffer => createHmac('sha256', secret).update(text).digest();
const macs = (vault: Vault, text: string): Buffer[] =>
  vault.deriveAll('proof marks').map((secret) => macOf(secret, text));

/** Keeps the mark instead of the one before it. */
export async function keepMark(db: Queryable, vault: Vault, { totals, ...mark }: Mark): Promise<void> {
  const sums = [...totals].map(([name, micros]) => [name, String(micros)]);
  const text = JSON.stringify({ ...mark, number: String(mark.number), totals: sums });
  await KEEP_MARK.all(db, [text, macs(vault, text)[0]]);
}

/** Finds the mark. Undefined: there is none, or no key of this vault made it. */
export async function findMark(db: Queryable, vault: Vault): Promise<Mark | undefined> {
  const kept = await FIND_MARK.first(db);
  if (!kept || !macs(vault, kept.text).some((mac) => mac.length === kept.mac.length && timingSafeEqual(mac, kept.mac)))
    return undefined;
  const { number, provenAt, totals, ...rest } = JSON.parse(kept.text);
  return {
    ...rest,
    number: BigInt(number),
    provenAt: new Date(provenAt),
    totals: new Map((totals as [string, string][]).map(([name, micros]) => [name, BigInt(micros)])),
  };
}
