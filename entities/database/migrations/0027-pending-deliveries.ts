/** An index of deliveries that were never tried. A worker looks for those whose webhook was not woken. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class PendingDeliveries0000000000027 implements MigrationInterface {
  readonly name = 'PendingDeliveries0000000000027';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `create index webhook_delivery_pending on webhook_delivery (created_at, webhook_id) where status = 'PENDING'`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop index webhook_delivery_pending');
  }
}
