/** Hosts and what they hold, the networks of the operator, what watching the engines has found, and what DNS was told. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Placements0000000000017 implements MigrationInterface {
  readonly name = 'Placements0000000000017';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [HOSTS, POOLS, FINDINGS, NAMES]) await runner.query(statements);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index server_reverse_dns; drop table reverse_dns_told;
      drop table brake; drop table finding;
      drop index address_pool_id;
      alter table address drop pool_id;
      drop table address_pool;
      drop table placement; drop table host`);
  }
}

const HOSTS = `
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
    mac text,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    constraint host_vcpus_fit_check check (claimed_vcpus >= 0 and (claimed_vcpus <= vcpus * vcpu_overcommit or kind = 'DEDICATED')),
    constraint host_memory_fits_check check (claimed_memory_mb >= 0 and (claimed_memory_mb <= memory_mb or kind = 'DEDICATED')),
    constraint host_disk_fits_check check (claimed_disk_gb >= 0 and (claimed_disk_gb <= disk_gb or kind = 'DEDICATED')),
    constraint host_machines_check check (machines >= 0 and (machines <= 1 or kind = 'VPS')),
    constraint host_dedicated_check check ((kind = 'DEDICATED') = (service_code is not null))
  );
  create index host_region on host (region_code, kind);

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
  create index placement_host on placement (host);`;

const POOLS = `
  create table address_pool (
    id text primary key,
    region_code text not null,
    family text not null check (family in ('IPV4', 'IPV6')),
    cidr inet not null,
    gateway inet,
    created_at timestamptz(3) not null default now()
  );
  alter table address add pool_id text;
  create index address_pool_id on address (pool_id) where pool_id is not null;`;

const FINDINGS = `
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
  );`;

const NAMES = `
  create table reverse_dns_told (
    ip inet primary key,
    ptr text not null
  );
  create index server_reverse_dns on server (id) where reverse_dns <> '[]';`;
