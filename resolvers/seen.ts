/** Tells the later of two operators of the change by the earlier one. */
import { isDeepStrictEqual } from 'node:util';
import { invalid } from './errors.ts';

/**
 * Compares the values that an operator saw with the present ones. The caller holds the lock of their row.
 * @param seen absent: any
 * @param field the argument that carries it
 * @throws ApiError validation_failed
 */
export function requireSeen<T>(what: string, present: T, seen: T | null | undefined, field = 'seen'): void {
  if (seen != null && !isDeepStrictEqual(seen, present))
    throw invalid(field, `Another operator has changed ${what} meanwhile. Look at it again.`);
}
