/** The tasks of payments: of a top-up, and of a payment by x402. */
import { PAYMENT_LANE } from '../../entities/tasks/lane.ts';
import type { NewTask } from '../../entities/tasks/start.ts';

export const TOP_UP_PROCESS = 'top-up';
export const X402_PROCESS = 'x402';

/** @param gateway the name of the driver that the task asks */
export const topUpTask = (orderNumber: string, accountId: string, gateway: string): NewTask => ({
  lane: PAYMENT_LANE,
  process: TOP_UP_PROCESS,
  subject: orderNumber,
  accountId,
  party: gateway,
  step: 'watch',
});

export const x402Task = ({ id, accountId }: { id: string; accountId: string }): NewTask => ({
  ...topUpTask(id, accountId, X402_PROCESS),
  process: X402_PROCESS,
});
