/** Where an engine and we believe different things, and the circuit breaker that stops the destroyer. */

import { entity, int, key, now, nullable, oneOf, type RowOf, text, timestamp } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

/**
 * - ORPHAN: a machine with our mark that no server has;
 * - LOST: the machine of a server that the engine does not have;
 * - POWER: a machine that is off though its server runs, or on though it is stopped;
 * - STUCK: a machine that was given up and could not be removed.
 */
export const FINDING_KINDS = ['ORPHAN', 'LOST', 'POWER', 'STUCK'] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export const Finding = entity(
  'finding',
  {
    id: key(),
    kind: oneOf(...FINDING_KINDS),
    driver: text(),
    orderNumber: text(),
    generation: int(),
    detail: text(),
    firstSeenAt: now(),
    lastSeenAt: now(),
    /** Since when it is not so any more. */
    resolvedAt: nullable(timestamp()),
  },
  [
    {
      name: 'finding_open',
      columns: ['kind', 'orderNumber', 'generation'],
      unique: true,
      where: 'resolved_at is null',
    },
  ],
);
export type Finding = RowOf<typeof Finding>;

/** While there is a row, no machine of that driver is destroyed. */
export const CircuitBreaker = entity('brake', { driver: key(), reason: text(), createdAt: now() });
export type CircuitBreaker = RowOf<typeof CircuitBreaker>;

export async function isBreakerOpen(db: Queryable, driver: string): Promise<boolean> {
  const [open] = await db.query('select 1 from brake where driver = $1', [driver]);
  return open !== undefined;
}
