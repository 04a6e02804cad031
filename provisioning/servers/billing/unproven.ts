/** Orders whose machine ran and gave no proof. One a day is free for an account; the others pay for the hours. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { hourlyMicros } from '../../../entities/money.ts';
import { MARK_UNPROVEN } from '../../../entities/servers/order.ts';
import type { Server } from '../../../entities/servers/server.ts';

/** The member of a task's data with the time when the first machine of its order was made. */
export interface MachineTime {
  onSince?: string;
}

/**
 * Charges an order that ends without proof, under the lock of its account. The caller takes the money from its hold.
 * @returns micro-USD; 0 for the first such order of a day, and for an order without a machine
 */
export async function chargeUnproven(
  tx: Transaction,
  { accountId, orderNumber, priceMonthMicros, setupFeeMicros }: Server,
  { onSince }: MachineTime,
): Promise<bigint> {
  if (onSince === undefined) return 0n;
  const { hours, repeated } = (await MARK_UNPROVEN.first(tx, [accountId, orderNumber, onSince]))!;
  const micros = hourlyMicros(priceMonthMicros) * BigInt(hours);
  const most = priceMonthMicros + setupFeeMicros;
  return repeated ? (micros < most ? micros : most) : 0n;
}
