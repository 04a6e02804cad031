/** Payments that were taken back for good, and those by x402 that came by themselves or were taken back after their credit. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

const BEFORE = ['SEEN', 'MINED', 'CREDITED', 'UNMATCHED', 'ORPHANED', 'REVERSED'];
const X402_BEFORE = ['SETTLING', 'SETTLED', 'FAILED'];

const allow = (table: string, statuses: string[]): string => `
  alter table ${table} drop constraint ${table}_status_check,
    add constraint ${table}_status_check check (status in (${statuses.map((status) => `'${status}'`).join(', ')}))`;

export class LostPayments0000000000025 implements MigrationInterface {
  readonly name = 'LostPayments0000000000025';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(allow('payment', [...BEFORE, 'WRITTEN_OFF']));
    await runner.query(allow('x402_payment', [...X402_BEFORE, 'UNMATCHED', 'REVERSED', 'WRITTEN_OFF']));
    await runner.query(`
      alter table x402_payment add column final_at timestamptz(3),
        add column reversed_micros bigint not null default 0 check (reversed_micros between 0 and amount_micros);
      create index x402_payment_suspense on x402_payment (id) where status in ('UNMATCHED', 'REVERSED')`);
    // Nobody looks after these any more.
    await runner.query(`update x402_payment set final_at = created_at where status = 'SETTLED'`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop index x402_payment_suspense');
    await runner.query('alter table x402_payment drop column final_at, drop column reversed_micros');
    await runner.query(allow('x402_payment', X402_BEFORE));
    await runner.query(allow('payment', BEFORE));
  }
}
