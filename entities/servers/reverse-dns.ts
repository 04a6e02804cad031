/** Reverse DNS: the names that the operator's DNS has, to compare with those that servers want. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, nullable, type Row, type RowOf } from '../database/table.ts';

/** A name that the operator's DNS has accepted. */
export const ReverseDnsTold = entity('reverse_dns_told', {
  ip: { ...column.inet(), primary: true },
  ptr: column.text(),
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
export const FIND_CHANGED_NAMES = statement(NAME)`
  with wanted as (
    select distinct on (1) (item->>'ip')::inet as ip, item->>'ptr' as ptr
    from server, jsonb_array_elements(reverse_dns) item
    where reverse_dns <> '[]' and status <> 'DELETED' order by 1, updated_at desc)
  select host(ip) as ip, wanted.ptr from wanted full join reverse_dns_told told using (ip)
  where wanted.ptr is distinct from told.ptr and ($2::inet is null or ip > $2) order by ip::inet limit $1`;
/** Notes names that the DNS has accepted. $1 addresses, $2 their names, null for none. */
export const NOTE_NAMES = statement({})`
  with done as (select * from unnest($1::inet[], $2::text[]) as given(ip, ptr)),
    forgotten as (delete from reverse_dns_told told using done where told.ip = done.ip and done.ptr is null)
  insert into reverse_dns_told (ip, ptr) select ip, ptr from done where ptr is not null order by ip
  on conflict (ip) do update set ptr = excluded.ptr`;
