-- The names that servers want, beside those that the operator's DNS has. So the worker reads only the names that differ.
alter table reverse_dns_told
  alter column ptr drop not null,
  add column wanted text,
  add column order_number text;
insert into reverse_dns_told (ip, wanted, order_number)
select distinct on (1) (item->>'ip')::inet, item->>'ptr', order_number from server, jsonb_array_elements(reverse_dns) item
where reverse_dns <> '[]' and status <> 'DELETED' order by 1, updated_at desc
on conflict (ip) do update set wanted = excluded.wanted, order_number = excluded.order_number;
create index reverse_dns_due on reverse_dns_told (ip) where wanted is distinct from ptr;
drop index server_reverse_dns;

-- A server gives up only names that it still has: another one may have got its address.
create function want_names() returns trigger language plpgsql as $$
    begin
      insert into reverse_dns_told as told (ip, wanted, order_number)
        select (item->>'ip')::inet, max(item->>'ptr') filter (where is_new), new.order_number from (
          select item, true as is_new from jsonb_array_elements(new.reverse_dns) item where new.status <> 'DELETED'
          union all select item, false from jsonb_array_elements(old.reverse_dns) item) as items
        group by 1 order by 1
        on conflict (ip) do update set wanted = excluded.wanted, order_number = excluded.order_number
          where excluded.wanted is not null or told.order_number = excluded.order_number;
      return null;
    end $$;
create trigger server_names_of_new after insert on server for each row when (new.reverse_dns <> '[]') execute function want_names();
create trigger server_names after update of reverse_dns, status on server for each row
  when (old.reverse_dns <> new.reverse_dns or (new.status = 'DELETED' and old.status <> 'DELETED' and new.reverse_dns <> '[]'))
  execute function want_names();
