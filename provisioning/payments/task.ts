/** The tasks of payments: of a top-up, and of a payment by x402. */
import type { NewTask } from '../../entities/tasks/start.ts';

export const PAYMENT_LANE = 'payments';
export const TOP_UP_PROCESS = 'top-up';
export const X402_PROCESS = 'x402';

export const topUpTask = (orderNumber: string, accountId: string): NewTask => ({
  lane: PAYMENT_LANE,
  process: TOP_UP_PROCESS,
  subject: orderNumber,
  accountId,
  step: 'watch',
});

export const x402Task = ({ id, accountId }: { id: string; accountId: string }): NewTask => ({
  ...topUpTask(id, accountId),
  process: X402_PROCESS,
});
