/** OAuth clients. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Oauth0000000000004 implements MigrationInterface {
  readonly name = 'Oauth0000000000004';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table oauth_client (
        id text primary key,
        account_id text not null,
        secret_digest bytea not null,
        scope text not null,
        grant_types text[] not null default '{}',
        auth_method text not null check (auth_method in ('client_secret_basic', 'client_secret_post')),
        redirect_uris text[] not null default '{}',
        metadata jsonb not null,
        created_at timestamptz(3) not null default now(),
        last_used_at timestamptz(3)
      );
      create index oauth_client_account on oauth_client (account_id, id);`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table oauth_client');
  }
}
