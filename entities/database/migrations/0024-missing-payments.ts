/** Credited payments that who was asked does not show any more. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class MissingPayments0000000000024 implements MigrationInterface {
  readonly name = 'MissingPayments0000000000024';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table payment add column missing_since timestamptz(3)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table payment drop column missing_since');
  }
}
