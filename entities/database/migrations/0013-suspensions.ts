/** Suspended accounts, coins that are switched off, logins that failed, and what the end of old credentials looks for. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Suspensions0000000000013 implements MigrationInterface {
  readonly name = 'Suspensions0000000000013';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(SUSPENSIONS);
  }

  async down(): Promise<void> {
    throw new Error('Suspensions cannot be forgotten.');
  }
}

// The tallies are worth nothing after a crash, and so need no write-ahead log.
const SUSPENSIONS = `
  alter table account add column suspended_at timestamptz(3), add column suspended_for text;

  create table coin_switch (
    code text primary key,
    available boolean not null,
    updated_at timestamptz(3) not null default now()
  );

  create unlogged table login_tally (
    key text primary key,
    failures double precision[] not null default '{}',
    under_way double precision[] not null default '{}',
    known_until double precision not null default 0,
    forget_at double precision not null
  ) with (fillfactor = 50);
  create index login_tally_forget on login_tally (forget_at);
`;
