/** Rotation of refresh tokens, the second factor, pending logins, and which API key spent what. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Auth0000000000003 implements MigrationInterface {
  readonly name = 'Auth0000000000003';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table session add column rotated_at timestamptz(3);
      create index session_family on session (family_id);

      create table totp (
        account_id text primary key,
        seed bytea not null,
        enabled_at timestamptz(3),
        setup_expires_at timestamptz(3) not null,
        last_step int not null default 0
      );

      create table recovery_code (
        account_id text not null,
        digest bytea not null,
        primary key (account_id, digest)
      );

      create table pending_login (
        id text primary key,
        account_id text not null,
        digest bytea not null,
        wrong_codes int not null default 0,
        expires_at timestamptz(3) not null,
        created_at timestamptz(3) not null default now()
      );
      create unique index pending_login_digest on pending_login (digest);
      create index pending_login_account on pending_login (account_id, expires_at);

      alter table transfer add column credential_id text;
      create index transfer_credential on transfer (credential_id, created_at) where credential_id is not null;`);
  }

  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup made before the upgrade instead.');
  }
}
