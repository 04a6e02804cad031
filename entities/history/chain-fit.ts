/**
 * The fast half of the proof of hash chains. PostgreSQL counts the links that fit their records and the links before them. It
 * writes the JSON of records as JavaScript does, but for a few odd values. `chain-proof.ts` reads the rest, and names faults.
 */
import * as column from '../database/column.ts';
import { type Statement, statement } from '../database/statement.ts';
import { nullable, type Row } from '../database/table.ts';

const FIT = {
  links: column.int(),
  /** The links whose records are there. */
  known: column.int(),
  /** The links that fit. */
  fitting: column.int(),
  /** The time of the oldest record. */
  oldest: nullable(column.timestamp()),
  /** The chain of the last link. Null: there is no link. */
  accountId: nullable(column.text()),
  /** Its number. */
  number: nullable(column.bigint()),
};
export type Fit = Row<typeof FIT>;

/** The links of one step. */
export const LINKS_OF_STEP = 10_000;

/** Parts of a statement, in SQL. */
interface Parts {
  /** Selects rows of `audit_link` by $1, $2 and $3. */
  links: string;
  /** The table of the records, which the other parts call `record`. */
  record: string;
  /** The chain to which a record belongs. */
  chain: string;
  /** Whether a link of `linked` without a record is right. */
  isAnchor: string;
  /** The JSON of a record. */
  json: string;
}

/** Declares the statement that counts the fitting links of a step. By the `offset 0`, no step reads all records. */
export const fitOf = ({ links, record, chain, isAnchor, json }: Parts): Statement<Fit> => statement(FIT, {
  replans: true,
})`
  with step as materialized (
      select account_id, number, entry_id, hash from audit_link where ${links} order by account_id, number limit ${LINKS_OF_STEP}),
    linked as (
      select *, lag(number) over chain as number_before, lag(hash) over chain as hash_before
        from step window chain as (partition by account_id order by number)),
    checked as (
      select record.id, record.created_at, case when record.id is null then ${isAnchor} else linked.account_id = ${chain}
          and linked.hash = sha256(coalesce(
            case when number_before = number - 1 then hash_before else (
              select hash from audit_link as before where before.account_id = linked.account_id and before.number = linked.number - 1) end,
            case number when 1 then decode(repeat('00', 32), 'hex') end) || convert_to(${json}, 'UTF8')) end as fits
        from linked left join lateral (select * from ${record} where id = linked.entry_id offset 0) as record on true)
  select count(*)::int as links, count(id)::int as known, count(*) filter (where fits)::int as fitting, min(created_at) as oldest,
    (select account_id from step order by account_id desc, number desc limit 1) as account_id,
    (select number from step order by account_id desc, number desc limit 1) as number
  from checked`;
