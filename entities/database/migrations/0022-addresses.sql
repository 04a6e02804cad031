-- Networks are for one kind of server. A network that only dedicated servers use becomes theirs, others belong to VPS.
alter table address_pool
  add kind text check (kind in ('VPS', 'DEDICATED')),
  add routed boolean not null default false;
update address_pool set routed = family = 'IPV6', kind = case when exists (
    select from address join server on server.order_number = address.held_by
    where address.pool_id = address_pool.id and server.kind = 'DEDICATED')
  and not exists (
    select from address join server on server.order_number = address.held_by
    where address.pool_id = address_pool.id and server.kind = 'VPS') then 'DEDICATED' else 'VPS' end;
alter table address_pool alter kind set not null;

alter table address add kind text check (kind in ('VPS', 'DEDICATED', 'SIMULATED'));
update address set kind = coalesce((select kind from address_pool where address_pool.id = pool_id), 'SIMULATED');
alter table address alter kind set not null, add constraint address_pool_check check ((kind = 'SIMULATED') = (pool_id is null));

-- The longest-rested address comes first.
drop index address_free;
create index address_free on address (region_code, family, kind, free_at nulls first, address) where held_by is null;

-- Simulated machines alone get the addresses of documentation.
alter table engine add simulated boolean;
update engine set simulated = driver = 'simulated';
alter table engine alter simulated set not null;
