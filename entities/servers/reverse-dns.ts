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
/**
 * At most $1 names that the DNS does not have yet, and $2 of an account. A name that has failed rests for $3 seconds. Accounts
 * whose names have not failed come first, in any order, and then those that failed longest ago. It walks from account to account in
 * the index, because PostgreSQL takes almost all names for due.
 */
export const FIND_CHANGED_NAMES = statement(OWNED_NAME)`
  with recursive account (id) as (
    (select account_id from reverse_dns_told where ${DUE} order by account_id limit 1)
    union all
    select (select account_id from reverse_dns_told where ${DUE} and account_id > account.id order by account_id limit 1)
    from account where id is not null)
  select host(ip) as ip, wanted as ptr, id as account_id from account
    cross join lateral (
      select refused_at as failed_at from reverse_dns_told where ${DUE} and account_id = id
      order by refused_at desc nulls last limit 1) as last
    cross join lateral (
      select ip, wanted, refused_at from reverse_dns_told
      where ${DUE} and account_id = id and (refused_at is null or refused_at <= now() - $3 * interval '1 second')
      order by refused_at nulls first, ip limit $2::int) as own
  order by failed_at nulls first, md5(id || now()), refused_at nulls first, ip limit $1::int`;
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
