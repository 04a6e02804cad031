/** Records what the operator publishes. */
import type { Transaction } from '../../entities/database/transaction.ts';
import type { Act } from '../../entities/history/record.ts';
import type { Context } from '../context.ts';
import { recordByOperator } from '../record.ts';

/** Records an event that the webhooks of all accounts get. */
export async function recordPublic(tx: Transaction, context: Context, subject: string, act: Act): Promise<void> {
  const eventId = await recordByOperator(tx, context, subject, act);
  await context.provisioning.webhooks.spread(tx, eventId, act.type);
}
