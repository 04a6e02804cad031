/** Renewals, suspension, the alert of a low balance, and requests in the audit log. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Renewals0000000000006 implements MigrationInterface {
  readonly name = 'Renewals0000000000006';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table server
        add column suspended_at timestamptz(3),
        add column suspended_from text check (suspended_from in ('RUNNING', 'STOPPED'));
      create index server_due on server (paid_until) where status in ('RUNNING', 'STOPPED');
      create index server_suspended on server (account_id, paid_until) where status = 'SUSPENDED';

      alter table account add column low_balance_alerted_at timestamptz(3);

      alter table audit_entry
        add column method text,
        add column path text,
        add column status int,
        alter column resource_type drop not null,
        alter column resource_id drop not null;`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      delete from audit_entry where resource_id is null;
      alter table audit_entry
        drop column method, drop column path, drop column status,
        alter column resource_type set not null,
        alter column resource_id set not null;
      alter table account drop column low_balance_alerted_at;
      drop index server_due, server_suspended;
      alter table server drop column suspended_at, drop column suspended_from;`);
  }
}
