/** Processor webhooks. They change nothing by themselves: the worker asks the processor about the top-up that one names. */
import type { Database } from '../../../entities/database/database.ts';
import { signalTask } from '../../tasks/tasks.ts';
import type { PaymentDriver, ProcessorWebhook } from '../drivers/driver.ts';

/** @returns whether a configured processor has signed it */
export async function acceptProcessorWebhook(
  db: Database,
  drivers: readonly PaymentDriver[],
  webhook: ProcessorWebhook,
): Promise<boolean> {
  for (const driver of drivers) {
    const subject = driver.readWebhook?.(webhook);
    if (!subject) continue;
    const codes = driver.coins().map(({ code }) => code);
    const [topUp] = await db.query<{ orderNumber: string }>(
      `select order_number from top_up where order_number = $1 and reference = $2 and crypto = any($3)`,
      [subject.orderNumber ?? null, subject.reference ?? null, codes],
    );
    if (topUp) await db.transaction((tx) => signalTask(tx, topUp.orderNumber));
    return true;
  }
  return false;
}
