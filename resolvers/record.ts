/** Records the acts of the operator. */
import type { Transaction } from '../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT } from '../entities/history/audit.ts';
import { type Act, record } from '../entities/history/record.ts';
import { actorOf, type Context } from './context.ts';

/** Records an act of the operator that is on no customer's account. */
export const recordByOperator = (tx: Transaction, context: Context, subject: string, act: Act): Promise<string> =>
  record(tx, OPERATOR_ACCOUNT, subject, { ...act, actor: actorOf(context) });
