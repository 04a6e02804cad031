/** Reverse DNS: the names that the operator's DNS has, to compare with those that servers want. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, nullable, type Row, type RowOf } from '../database/table.ts';

/** A name of an address. Triggers of `server` write the wanted one. */
export const ReverseDnsTold = entity('reverse_dns_told', {
  ip: { ...column.inet(), primary: true },
  /** The name that the operator's DNS has accepted. Null: none. */
  ptr: nullable(column.text()),
  /** The name that a server wants. Null: none any more. */
  wanted: nullable(column.text()),
  /** The server that wants the name, or did so last. */
  orderNumber: nullable(column.text()),
});
export type ReverseDnsTold = RowOf<typeof ReverseDnsTold>;

const NAME = {
  ip: column.text(),
  /** Null: the address has no name any more. */
  ptr: nullable(column.text()),
};
/** The name that an address has to get. */
export type ReverseName = Row<typeof NAME>;

/** Names that the DNS does not have yet, in the order of addresses. $1 how many, $2 the address before the first, or null. */
export const FIND_CHANGED_NAMES = statement(NAME, { replans: true })`
  select host(ip) as ip, wanted as ptr from reverse_dns_told
  where wanted is distinct from ptr and ($2::inet is null or ip > $2) order by reverse_dns_told.ip limit $1::int`;
/** Notes names that the DNS has accepted. $1 addresses, $2 their names, null for none. An address without a name goes. */
export const NOTE_NAMES = statement({})`
  with given as (select * from unnest($1::inet[], $2::text[]) as given(ip, ptr)),
    locked as (select ip, wanted from reverse_dns_told where ip = any($1::inet[]) order by ip for update),
    done as (select ip, ptr, wanted is null and ptr is null as is_over from locked join given using (ip)),
    gone as (delete from reverse_dns_told using done where reverse_dns_told.ip = done.ip and is_over)
  update reverse_dns_told set ptr = done.ptr from done where reverse_dns_told.ip = done.ip and not is_over`;
