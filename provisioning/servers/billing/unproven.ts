/**
 * Orders whose machine ran and gave no proof, and dedicated orders that were deleted before their delivery. One a day is free
 * for an account; the others pay for the hours.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { hourlyMicros } from '../../../entities/money.ts';
import { COUNT_KEPT_HOURS, MARK_UNPROVEN } from '../../../entities/servers/order.ts';
import type { Server } from '../../../entities/servers/server.ts';
import type { Observation } from '../drivers/driver.ts';

/** The members of a task's data that count how long the machines of its order ran. */
export interface MachineTime {
  /** The time between looks that saw a machine run. Absent: no look saw one. */
  onSeconds?: number;
  /** The last look, if it saw the machine run. */
  onAt?: string | null;
}

/** Counts the time since the last look at a machine, if both looks saw it run. */
export function machineTime(
  { onSeconds = 0, onAt }: MachineTime,
  { phase, power, busy }: Observation,
  now: Date,
): MachineTime {
  if (phase !== 'present' || power !== 'on' || busy) return { onAt: null };
  const seconds = onAt ? (now.getTime() - Date.parse(onAt)) / 1000 : 0;
  return { onSeconds: onSeconds + seconds, onAt: now.toISOString() };
}

/**
 * Charges an order that ends without proof, under the lock of its account. The caller takes the money from its hold.
 * @returns micro-USD; 0 for the first such order of a day, and for an order whose machine never ran
 */
export async function chargeUnproven(tx: Transaction, server: Server, { onSeconds }: MachineTime): Promise<bigint> {
  if (onSeconds === undefined) return 0n;
  const { accountId, orderNumber } = server;
  return chargeOf(server, (await MARK_UNPROVEN.first(tx, [accountId, orderNumber, onSeconds]))!);
}

/**
 * Charges a deleted dedicated order for the hours from the order until its host is free. The caller takes the money from its
 * hold.
 * @returns micro-USD; 0 for the first such order of a day; null if the order has kept no hold
 */
export async function chargeKept(tx: Transaction, server: Server): Promise<bigint | null> {
  const kept = await COUNT_KEPT_HOURS.first(tx, [server.orderNumber]);
  return kept ? chargeOf(server, kept) : null;
}

function chargeOf(
  { priceMonthMicros, setupFeeMicros }: Server,
  { hours, repeated }: { hours: number; repeated: boolean },
): bigint {
  const micros = hourlyMicros(priceMonthMicros) * BigInt(hours);
  const most = priceMonthMicros + setupFeeMicros;
  return repeated ? (micros < most ? micros : most) : 0n;
}
