/** The task of one payment by x402. */
import type { NewTask } from '../../../entities/tasks/start.ts';
import { TOP_UP_LANE } from '../top-ups/await-payment.ts';

export const X402_PROCESS = 'x402';

export const x402Task = ({ id, accountId }: { id: string; accountId: string }): NewTask => ({
  lane: TOP_UP_LANE,
  process: X402_PROCESS,
  subject: id,
  accountId,
  step: 'watch',
});
