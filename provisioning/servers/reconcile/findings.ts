/** Writes down where an engine and we believe different things. It is told once, when it is new. */

import type { Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record, recordAll } from '../../../entities/history/record.ts';
import { newId } from '../../../entities/ids.ts';
import type { FindingKind } from '../../../entities/servers/finding.ts';
import type { MachineKey, Observation } from '../drivers/driver.ts';

export interface Found extends MachineKey {
  kind: FindingKind;
  detail: string;
}

/** Writes findings down, and tells the operator of those that are new. */
export async function report(tx: Transaction, driver: string, found: readonly Found[]): Promise<void> {
  const given = found.map((one) => ({ id: newId('fnd'), ...one }));
  const written = await tx.query<Found & { id: string; isNew: boolean }>(
    `insert into finding (id, kind, driver, order_number, generation, detail)
      select id, kind, $1, "order", generation, detail
      from jsonb_to_recordset($2::jsonb) as given(id text, kind text, "order" text, generation int, detail text)
      order by kind, "order", generation
      on conflict (kind, order_number, generation) where resolved_at is null
        do update set last_seen_at = now(), detail = excluded.detail
      returning id, kind, order_number as "order", generation, xmax = 0 as is_new`,
    [driver, JSON.stringify(given)],
  );
  await recordAll(
    tx,
    written
      .filter(({ isNew }) => isNew)
      .map(({ id: subject, kind, order: orderNumber, generation }) => ({
        accountId: OPERATOR_ACCOUNT,
        subject,
        type: 'finding.reported',
        actor: SYSTEM,
        data: { kind, driver, orderNumber, generation },
      })),
  );
}

export const reportStuck = (tx: Transaction, driver: string, seen: Observation): Promise<void> =>
  report(tx, driver, [
    {
      kind: 'STUCK',
      order: seen.order,
      generation: seen.generation,
      detail: `It was given up and cannot be removed. ${seen.detail ?? `${seen.phase}, ${seen.power ?? 'power unknown'}`}`,
    },
  ]);

/**
 * What is not so any more, of some kinds: what was not found again, or what is named.
 */
export async function resolve(
  tx: Transaction,
  driver: string,
  kinds: FindingKind[],
  found: Found[],
  named?: MachineKey[],
): Promise<void> {
  const nameOf = ({ order, generation }: MachineKey) => `${order}.${generation}`;
  const names = named?.map(nameOf) ?? found.map((one) => `${one.kind}.${nameOf(one)}`);
  const which = named
    ? `order_number || '.' || generation = any($3)`
    : `kind || '.' || order_number || '.' || generation <> all($3)`;
  await tx.query(
    `with over as (
        select id from finding where driver = $1 and kind = any($2) and resolved_at is null and ${which}
        order by kind, order_number, generation for update)
      update finding set resolved_at = now() from over where finding.id = over.id`,
    [driver, kinds, names],
  );
}

/** Opens the circuit breaker of an engine: the worker destroys no machine there until the operator closes it. */
export async function openBreaker(tx: Transaction, driver: string, reason: string): Promise<void> {
  const pulled = await tx.query(
    'insert into brake (driver, reason) values ($1, $2) on conflict do nothing returning driver',
    [driver, reason],
  );
  if (pulled.length)
    await record(tx, OPERATOR_ACCOUNT, driver, { type: 'engine.braked', actor: SYSTEM, data: { reason } });
}
