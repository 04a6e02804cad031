/** The findings of the observers, and the circuit breakers that they opened. */
import { findAll, lock, remove } from '../../entities/database/table.ts';
import { CircuitBreaker, type Finding } from '../../entities/servers/finding.ts';
import { LIST_OPEN_FINDINGS, LIST_TROUBLES, type Trouble } from '../../entities/servers/operator-lists.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';
import { recordByOperator } from '../record.ts';

export { FINDING_KINDS } from '../../entities/servers/finding.ts';

/** The open findings, the newest first. */
export const listFindings = ({ db }: Context, limit: number): Promise<Finding[]> => LIST_OPEN_FINDINGS.all(db, [limit]);

/** The last words of engines about machines, the newest first. */
export const listTroubles = ({ db }: Context, limit: number): Promise<Trouble[]> => LIST_TROUBLES.all(db, [limit]);

export const listBreakers = ({ db }: Context): Promise<CircuitBreaker[]> =>
  findAll(db, CircuitBreaker, {}, { driver: 'ASC' });

/** Closes the circuit breaker of an engine, so that workers destroy its machines again. @throws ApiError not_found */
export async function closeBreaker(context: Context, driver: string): Promise<CircuitBreaker> {
  return context.db.transaction(async (tx) => {
    const breaker = found(await lock(tx, CircuitBreaker, { driver }), 'No circuit breaker of this engine is open.');
    await remove(tx, CircuitBreaker, { driver });
    const { reason } = breaker;
    await recordByOperator(tx, context, driver, { type: 'engine.released', data: { reason } });
    return breaker;
  });
}
