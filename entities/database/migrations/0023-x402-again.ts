/** What an x402 payment needs to be settled by whoever looks after it. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class X402Again0000000000023 implements MigrationInterface {
  readonly name = 'X402Again0000000000023';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table x402_payment add column sealed_payment bytea');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table x402_payment drop column sealed_payment');
  }
}
