/** What is under way with a server that is being changed. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Servers0000000000005 implements MigrationInterface {
  readonly name = 'Servers0000000000005';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table server add column change jsonb');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table server drop column change');
  }
}
