-- Networks are for one kind of server. A network that only dedicated servers use becomes theirs. So does a network without
-- machines, if its region has hosts for dedicated servers, and neither hosts nor servers of VPS. Others belong to VPS.
alter table address_pool
  add kind text check (kind in ('VPS', 'DEDICATED')),
  add routed boolean not null default false;
update address_pool pool set routed = family = 'IPV6', kind = case
  when exists (
    select from address join server on server.order_number = address.held_by
    where address.pool_id = pool.id and server.kind = 'VPS') then 'VPS'
  when exists (
    select from address join server on server.order_number = address.held_by
    where address.pool_id = pool.id and server.kind = 'DEDICATED') then 'DEDICATED'
  when exists (select from host where host.region_code = pool.region_code and host.kind = 'DEDICATED')
    and not exists (select from host where host.region_code = pool.region_code and host.kind = 'VPS')
    and not exists (
      select from server where server.region = pool.region_code and server.kind = 'VPS' and server.status <> 'DELETED')
    then 'DEDICATED'
  else 'VPS' end;
alter table address_pool alter kind set not null;

alter table address add kind text check (kind in ('VPS', 'DEDICATED', 'SIMULATED'));
update address set kind = coalesce((select kind from address_pool where address_pool.id = pool_id), 'SIMULATED');
alter table address alter kind set not null, add constraint address_pool_check check ((kind = 'SIMULATED') = (pool_id is null));

-- The /64 that contains the gateway is no machine's.
delete from address using address_pool pool
  where address.pool_id = pool.id and address.family = 'IPV6' and address.held_by is null and pool.gateway << address.address;

-- The longest-rested address comes first.
drop index address_free;
create index address_free on address (region_code, family, kind, free_at nulls first, address) where held_by is null;

-- Simulated machines alone get the addresses of documentation.
alter table engine add simulated boolean;
update engine set simulated = driver = 'simulated';
alter table engine alter simulated set not null;
