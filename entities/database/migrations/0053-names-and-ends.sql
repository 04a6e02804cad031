-- Each account gets its turn at the operator's DNS. A name that the DNS refused comes after the others of its account.
alter table reverse_dns_told add column account_id text not null default 'operator', add column refused_at timestamptz(3);
update reverse_dns_told set account_id = server.account_id from server where server.order_number = reverse_dns_told.order_number;
delete from reverse_dns_told where wanted is null and ptr is null;
drop index reverse_dns_due;
create index reverse_dns_due on reverse_dns_told (account_id, refused_at nulls first, ip) where wanted is distinct from ptr;

-- A server gives up only names that it still has: another one may have got its address. A name that the DNS never had goes.
create or replace function want_names() returns trigger language plpgsql as $$
    declare
      ips inet[];
    begin
      insert into reverse_dns_told as told (ip, wanted, order_number, account_id)
        select (item->>'ip')::inet, max(item->>'ptr') filter (where is_new), new.order_number, new.account_id from (
          select item, true as is_new from jsonb_array_elements(new.reverse_dns) item where new.status <> 'DELETED'
          union all select item, false from jsonb_array_elements(old.reverse_dns) item) as items
        group by 1 order by 1
        on conflict (ip) do update set wanted = excluded.wanted, order_number = excluded.order_number,
            account_id = excluded.account_id, refused_at = null
          where excluded.wanted is not null or told.order_number = excluded.order_number;
      if tg_op = 'UPDATE' then
        select array_agg((item->>'ip')::inet) into ips from jsonb_array_elements(old.reverse_dns) item;
        delete from reverse_dns_told where ip = any(ips) and wanted is null and ptr is null;
      end if;
      return null;
    end $$;

-- The end of a delivery may come long after its event.
alter table webhook_delivery add column ended_at timestamptz(3);
create function note_end_of_delivery() returns trigger language plpgsql as $$
    begin
      new.ended_at = case when new.next_attempt_at is null then now() end;
      return new;
    end $$;
create trigger webhook_delivery_made before insert on webhook_delivery
  for each row when (new.next_attempt_at is null) execute function note_end_of_delivery();
create trigger webhook_delivery_ends before update of next_attempt_at on webhook_delivery
  for each row when ((old.next_attempt_at is null) <> (new.next_attempt_at is null)) execute function note_end_of_delivery();
drop index webhook_delivery_ended;
create index webhook_delivery_ended on webhook_delivery (ended_at, webhook_id) where ended_at is not null;
create index webhook_delivery_old on webhook_delivery (created_at) where next_attempt_at is null;
