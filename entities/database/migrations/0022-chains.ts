/** How far each chain was read. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Chains0000000000022 implements MigrationInterface {
  readonly name = 'Chains0000000000022';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table chain (
        network text primary key,
        head int not null,
        height int,
        reached_at timestamptz(3)
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table chain');
  }
}
