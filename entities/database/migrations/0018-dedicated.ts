/** Dedicated servers: what is on its way onto boxes, and what people have to do by hand. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Dedicated0000000000018 implements MigrationInterface {
  readonly name = 'Dedicated0000000000018';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table deployment (
        id text primary key,
        order_number text not null,
        generation int not null,
        box text not null,
        mac text not null,
        disk text not null,
        state text not null default 'WAITING'
          check (state in ('WAITING', 'INSTALLING', 'INSTALLED', 'BOOTED', 'WIPING', 'WIPED')),
        run int not null default 1,
        image text not null,
        spec_digest text not null,
        seed bytea,
        device text not null default 'PXE' check (device in ('PXE', 'DISK')),
        cycle text check (cycle in ('OFF', 'ON')),
        change text,
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
      create index manual_job_open on manual_job (id) where state = 'OPEN'`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table manual_job; drop table deployment');
  }
}
