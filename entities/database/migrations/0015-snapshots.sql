-- The row that an event tells, once for all its deliveries.
create table webhook_snapshot (
  event_id text primary key,
  snapshot jsonb not null
);
insert into webhook_snapshot (event_id, snapshot)
  select distinct on (event_id) event_id, snapshot from webhook_delivery where snapshot is not null order by event_id;
alter table webhook_delivery drop column snapshot;
