/** Calls of payment processors. They change nothing by themselves: whoever repeats or reorders them has his top-up looked at. */
import type { Database } from '../../../entities/database/database.ts';
import { signalTask } from '../../tasks/tasks.ts';
import type { PaymentDriver, ProcessorWebhook } from '../drivers/driver.ts';

/** @returns whether it was the word of a processor of ours */
export async function acceptProcessorWebhook(
  db: Database,
  drivers: readonly PaymentDriver[],
  hint: ProcessorWebhook,
): Promise<boolean> {
  for (const driver of drivers) {
    const subject = driver.readWebhook?.(hint);
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
