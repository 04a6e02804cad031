/** Idempotency keys, and the counters of the rate limits. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Limits0000000000008 implements MigrationInterface {
  readonly name = 'Limits0000000000008';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(LIMITS);
  }

  async down(): Promise<void> {
    throw new Error('The tables of the limits cannot be taken back.');
  }
}

// The counters are worth nothing after a crash, and so need no write-ahead log.
const LIMITS = `
  create table idempotency_key (
    scope text not null,
    key_digest bytea not null,
    input_mac bytea not null,
    sealed_answer bytea,
    expires_at timestamptz(3) not null,
    primary key (scope, key_digest)
  );
  create index idempotency_key_expires on idempotency_key (expires_at);

  create unlogged table rate (
    key text primary key,
    at double precision not null,
    minute bigint not null,
    in_minute int not null,
    before_minute int not null,
    hour bigint not null,
    in_hour int not null,
    before_hour int not null,
    allowed boolean not null
  ) with (fillfactor = 50);
`;
