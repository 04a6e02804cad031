/** Payment processors tell that something is new. Nothing is believed but that it is worth a look. */
import type { Hint } from '../provisioning/index.ts';
import type { Context } from './context.ts';

/** @returns whether it was the word of a processor of ours */
export const takeHint = ({ db, provisioning }: Context, hint: Hint): Promise<boolean> =>
  provisioning.payments.takeHint(db, hint);
