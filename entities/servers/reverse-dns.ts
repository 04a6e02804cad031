/** Reverse DNS: the names that the operator's DNS has, to compare with those that servers want. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, nullable, type Row, type RowOf } from '../database/table.ts';

/** A name of an address. Triggers of `server` write the wanted one. */
export const ReverseDnsTold = entity('reverse_dns_told', {
  ip: { ...column.inet(), primary: true },
  /** The name that the operator's DNS has accepted. Null: none. */
  ptr: nullable(column.text()),
  /** The name that a server wants. Null: none any more. */
  wanted: nullable(column.text()),
  /** The server that wants the name, or did so last. */
  orderNumber: nullable(column.text()),
  /** The account of the server. The operator has the names that no server wanted. */
  accountId: defaulting(column.text(), "'operator'"),
  /** When the DNS refused the wanted name. */
  refusedAt: nullable(column.timestamp()),
});
export type ReverseDnsTold = RowOf<typeof ReverseDnsTold>;

const NAME = {
  ip: column.text(),
  /** Null: the address has no name any more. */
  ptr: nullable(column.text()),
};
const OWNED_NAME = { ...NAME, accountId: column.text() };
/** The name that an address has to get. */
export type ReverseName = Row<typeof NAME>;

const DUE = 'wanted is distinct from ptr';
const DUE_NOW = `${DUE} and (refused_at is null or refused_at <= now() - $4 * interval '1 second')`;
/**
 * Names that the DNS does not have yet. They are at most $3 of an account, and of the $2 accounts after the id $1. A name
 * that has failed rests for $4 seconds.
 */
export const FIND_CHANGED_NAMES = statement(OWNED_NAME)`
  with recursive due (account_id, number) as (
    (select account_id, 1 from reverse_dns_told where ${DUE_NOW} and account_id > $1 order by account_id limit 1)
    union all
    select next.account_id, number + 1 from due cross join lateral (
      select account_id from reverse_dns_told where ${DUE_NOW} and account_id > due.account_id order by account_id limit 1) next
    where number < $2::int)
  select host(ip) as ip, wanted as ptr, due.account_id from due cross join lateral (
    select ip, wanted from reverse_dns_told where ${DUE_NOW} and account_id = due.account_id
    order by refused_at nulls first, ip limit $3::int) as own`;
/** Any account with names that the DNS does not have yet. */
export const FIND_ANY_CHANGED = statement({ accountId: column.text() })`
  select account_id from (select distinct account_id from reverse_dns_told where ${DUE}) as due order by random() limit 1`;
/**
 * Notes names that the DNS has accepted. $1 addresses, $2 their names, null for none. An address without a name goes. If its row
 * went meanwhile, the DNS has to forget the name again. $3 are addresses whose names failed.
 */
export const NOTE_NAMES = statement({})`
  with given as (select * from unnest($1::inet[], $2::text[]) as given(ip, ptr)),
    locked as (select ip, wanted from reverse_dns_told where ip = any($1::inet[] || $3::inet[]) order by ip for update),
    over as (select ip from locked join given using (ip) where wanted is null and ptr is null),
    gone as (delete from reverse_dns_told using over where reverse_dns_told.ip = over.ip),
    refused as (update reverse_dns_told set refused_at = now() from locked where reverse_dns_told.ip = locked.ip and locked.ip = any($3::inet[]))
  insert into reverse_dns_told (ip, ptr)
    select ip, ptr from given where ip not in (select ip from over) and (ptr is not null or ip in (select ip from locked)) order by ip
    on conflict (ip) do update set ptr = excluded.ptr`;
