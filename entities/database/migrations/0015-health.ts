/**
 * What workers find of drivers; it is found anew within a minute, so it need not survive a crash of the database. And an
 * index for the audit log by action: the last of a rare one may be far behind.
 */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Health0000000000015 implements MigrationInterface {
  readonly name = 'Health0000000000015';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create unlogged table health (
        component text primary key,
        status text not null check (status in ('operational', 'partial_outage', 'major_outage')),
        checked_at timestamptz(3) not null default now()
      );
      create index audit_entry_action on audit_entry (account_id, action, id)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop index audit_entry_action; drop table health');
  }
}
