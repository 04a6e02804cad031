-- Servers, the addresses and hosts that they occupy, and the work on the machines.

create table server (
  id text primary key,
  account_id text not null,
  order_number text not null,
  kind text not null check (kind in ('VPS', 'DEDICATED')),
  status text not null check (status in ('PENDING', 'PROVISIONING', 'RUNNING', 'STARTING', 'STOPPING', 'STOPPED',
    'REBOOTING', 'REBUILDING', 'RESIZING', 'SUSPENDED', 'FAILED', 'DELETING', 'DELETED')),
  hostname text not null,
  service_code text not null,
  region text not null,
  os text not null,
  host text,
  generation int not null default 1,
  ipv4 inet,
  ipv6 inet,
  ipv6_prefix text,
  reverse_dns jsonb not null default '[]',
  ssh_key_ids text[] not null default '{}',
  ssh_public_keys text[] not null default '{}',
  user_data text,
  root_password bytea,
  labels jsonb not null default '{}',
  auto_renew boolean not null default true,
  delete_protection boolean not null default false,
  price_month_micros bigint not null check (price_month_micros >= 0),
  setup_fee_micros bigint not null check (setup_fee_micros >= 0),
  paid_until timestamptz(3),
  suspended_at timestamptz(3),
  suspended_from text check (suspended_from in ('RUNNING', 'STOPPED')),
  failure_code text,
  failure_message text,
  change jsonb,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create unique index server_order_number on server (order_number);
create index server_account on server (account_id, id);
create index server_live on server (account_id, id) where status <> 'DELETED';
create index server_due on server (paid_until) where status in ('RUNNING', 'STOPPED');
create index server_suspended on server (account_id, paid_until) where status = 'SUSPENDED';
create index server_reverse_dns on server (id) where reverse_dns <> '[]';

create table address_pool (
  id text primary key,
  region_code text not null,
  family text not null check (family in ('IPV4', 'IPV6')),
  cidr inet not null,
  gateway inet,
  created_at timestamptz(3) not null default now()
);

create table address (
  address inet primary key,
  family text not null check (family in ('IPV4', 'IPV6')),
  region_code text not null,
  prefix_length int check (prefix_length between 0 and 128),
  gateway inet,
  held_by text,
  free_at timestamptz(3),
  pool_id text
);
create index address_free on address (region_code, family, address) where held_by is null;
create index address_held_by on address (held_by) where held_by is not null;
create index address_pool_id on address (pool_id) where pool_id is not null;

create table reverse_dns_told (
  ip inet primary key,
  ptr text not null
);

create table host (
  name text primary key check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
  region_code text not null,
  kind text not null check (kind in ('VPS', 'DEDICATED')),
  driver text not null,
  state text not null default 'ACTIVE' check (state in ('ACTIVE', 'DRAINING', 'OFFLINE')),
  vcpus int not null check (vcpus > 0),
  memory_mb int not null check (memory_mb > 0),
  disk_gb int not null check (disk_gb > 0),
  vcpu_overcommit double precision not null default 1 check (vcpu_overcommit between 0.1 and 100),
  claimed_vcpus int not null default 0,
  claimed_memory_mb int not null default 0,
  claimed_disk_gb int not null default 0,
  machines int not null default 0,
  service_code text,
  bmc_protocol text check (bmc_protocol in ('IPMI', 'REDFISH')),
  bmc_address text,
  bmc_user text,
  bmc_password bytea,
  bmc_certificate text,
  mac text,
  disk text check (disk ~ '^/dev/[A-Za-z0-9/_.:-]{1,200}$'),
  firmware text check (firmware in ('BIOS', 'UEFI')),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint host_vcpus_fit_check
    check (claimed_vcpus >= 0 and (claimed_vcpus <= vcpus * vcpu_overcommit or kind = 'DEDICATED')),
  constraint host_memory_fits_check
    check (claimed_memory_mb >= 0 and (claimed_memory_mb <= memory_mb or kind = 'DEDICATED')),
  constraint host_disk_fits_check
    check (claimed_disk_gb >= 0 and (claimed_disk_gb <= disk_gb or kind = 'DEDICATED')),
  constraint host_machines_check check (machines >= 0 and (machines <= 1 or kind = 'VPS')),
  constraint host_dedicated_check check ((kind = 'DEDICATED') = (service_code is not null))
);
create index host_region on host (region_code, kind);
create unique index host_mac on host (mac);
create unique index host_bmc_address on host (bmc_address);

create table placement (
  order_number text not null,
  generation int not null,
  resizing boolean not null,
  host text not null,
  vcpus int not null,
  memory_mb int not null,
  disk_gb int not null,
  primary key (order_number, generation, resizing)
);
create index placement_host on placement (host);

create table engine (
  kind text primary key check (kind in ('VPS', 'DEDICATED')),
  driver text not null,
  needs_hosts boolean not null
);

create table finding (
  id text primary key,
  kind text not null check (kind in ('ORPHAN', 'LOST', 'POWER', 'STUCK')),
  driver text not null,
  order_number text not null,
  generation int not null,
  detail text not null,
  first_seen_at timestamptz(3) not null default now(),
  last_seen_at timestamptz(3) not null default now(),
  resolved_at timestamptz(3)
);
create unique index finding_open on finding (kind, order_number, generation) where resolved_at is null;

create table brake (
  driver text primary key,
  reason text not null,
  created_at timestamptz(3) not null default now()
);

create table deployment (
  id text primary key,
  order_number text not null,
  generation int not null,
  box text not null,
  mac text not null,
  disk text not null,
  state text not null default 'WAITING'
    check (state in ('WAITING', 'INSTALLING', 'INSTALLED', 'BOOTED', 'WIPING', 'WIPED', 'RETIRED')),
  run int not null default 1,
  image text not null,
  spec_digest text not null,
  seed bytea,
  device text not null default 'PXE' check (device in ('PXE', 'DISK')),
  cycle text check (cycle in ('OFF', 'ON')),
  change text,
  note text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create unique index deployment_machine on deployment (order_number, generation);
create unique index deployment_box on deployment (box);
create unique index deployment_mac on deployment (mac);

create table manual_job (
  id text primary key,
  order_number text not null,
  generation int not null,
  action text not null check (action in ('CREATE', 'POWER', 'REBUILD', 'RESIZE', 'DESTROY')),
  change text not null,
  power text check (power in ('on', 'off', 'restart', 'reset')),
  spec_digest text,
  spec bytea,
  state text not null default 'OPEN' check (state in ('OPEN', 'DONE', 'FAILED')),
  note text,
  created_at timestamptz(3) not null default now(),
  closed_at timestamptz(3)
);
create unique index manual_job_change on manual_job (order_number, generation, action, change);
create index manual_job_open on manual_job (id) where state = 'OPEN';
