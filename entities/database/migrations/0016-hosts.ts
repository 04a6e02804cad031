/** Where machines are: the host of a server, and the network that an address is in. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Hosts0000000000016 implements MigrationInterface {
  readonly name = 'Hosts0000000000016';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table server add host text;
      alter table address add prefix_length int check (prefix_length between 0 and 128), add gateway inet`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table address drop gateway, drop prefix_length; alter table server drop host');
  }
}
