/** What watching the engines has found, and the circuit breakers that it has opened. */

import { columnsOf } from '../../entities/database/table.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { CircuitBreaker, Finding } from '../../entities/servers/finding.ts';
import { actorOf, type Context } from '../context.ts';

export { FINDING_KINDS } from '../../entities/servers/finding.ts';

/** Those that are still so, the newest first. */
export const listFindings = ({ db }: Context, limit: number): Promise<Finding[]> =>
  db.query(
    `select ${columnsOf(Finding)} from finding where resolved_at is null order by first_seen_at desc, id desc limit $1`,
    [limit],
  );

export const listBreakers = ({ db }: Context): Promise<CircuitBreaker[]> =>
  db.query(`select ${columnsOf(CircuitBreaker)} from brake order by driver`);

/** Lets the machines of an engine be destroyed again. @throws ApiError not_found */
export async function closeBreaker(context: Context, driver: string): Promise<CircuitBreaker> {
  return context.db.transaction(async (tx) => {
    const [released] = await tx.query<CircuitBreaker>(
      `delete from brake where driver = $1 returning ${columnsOf(CircuitBreaker)}`,
      [driver],
    );
    if (!released) throw new ApiError('not_found');
    await record(tx, OPERATOR_ACCOUNT, driver, {
      type: 'engine.released',
      actor: actorOf(context),
      data: { reason: released.reason },
    });
    return released;
  });
}
