/** Writes down where an engine and we believe different things. It is told once, when it is new. */
import { OPERATOR_ACCOUNT, SYSTEM } from '../../entities/audit.ts';
import type { Transaction } from '../../entities/database.ts';
import type { FindingKind } from '../../entities/finding.ts';
import { newId } from '../../entities/ids.ts';
import { record } from '../../entities/record.ts';
import type { MachineKey, Observation } from './drivers/driver.ts';

export interface Found extends MachineKey {
  kind: FindingKind;
  detail: string;
}

/** @returns whether it is new */
export async function report(tx: Transaction, driver: string, { kind, order, generation, detail }: Found) {
  const [finding] = await tx.query<{ id: string; isNew: boolean }>(
    `insert into finding (id, kind, driver, order_number, generation, detail) values ($1, $2, $3, $4, $5, $6)
      on conflict (kind, order_number, generation) where resolved_at is null
        do update set last_seen_at = now(), detail = excluded.detail
      returning id, xmax = 0 as "isNew"`,
    [newId('fnd'), kind, driver, order, generation, detail],
  );
  if (!finding!.isNew) return false;
  await record(tx, OPERATOR_ACCOUNT, finding!.id, {
    ...{ type: 'finding.reported', resource: 'finding', actor: SYSTEM },
    data: { kind, driver, orderNumber: order, generation },
  });
  return true;
}

export const reportStuck = (tx: Transaction, driver: string, seen: Observation) =>
  report(tx, driver, {
    ...{ kind: 'STUCK', order: seen.order, generation: seen.generation },
    detail: `It was given up and cannot be removed. ${seen.detail ?? `${seen.phase}, ${seen.power ?? 'power unknown'}`}`,
  });
