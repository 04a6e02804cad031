-- The operator evacuates a host: its machines move to others of its engine. A machine that moves has claims on both hosts.
alter table host
  drop constraint host_state_check,
  add constraint host_state_check check (state in ('ACTIVE', 'DRAINING', 'EVACUATING', 'OFFLINE'));
alter table placement
  add column moving boolean not null default false,
  add column unmoved boolean not null default false,
  drop constraint placement_pkey,
  add primary key (order_number, generation, resizing, moving),
  add constraint placement_moving_check check (not (moving and (resizing or unmoved)));
