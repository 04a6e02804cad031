/** Writes findings. The operator gets an event for each new one, once. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record, recordAll } from '../../../entities/history/record.ts';
import { newId } from '../../../entities/ids.ts';
import {
  type FindingKind,
  OPEN_BREAKER,
  RESOLVE_MACHINES,
  RESOLVE_OTHERS,
  WRITE_FINDINGS,
} from '../../../entities/servers/finding.ts';
import type { MachineKey, Observation } from '../drivers/driver.ts';

export const nameOf = ({ order, generation }: MachineKey): string => `${order}.${generation}`;

/** A text that the database can store: without NUL, and without halves of a pair of UTF-16. */
export const storable = (text: string): string => text.replaceAll('\0', '').toWellFormed();

/** A difference that the worker has found. CAPACITY has the name of the host as its order, and the generation 0. */
export interface Found extends MachineKey {
  kind: FindingKind;
  detail: string;
}

/** Writes findings, and records the new ones for the operator. */
export async function report(tx: Transaction, driver: string, found: readonly Found[]): Promise<void> {
  const given = found.map((one) => ({ id: newId('fnd'), ...one, detail: storable(one.detail) }));
  const written = await WRITE_FINDINGS.all(tx, [driver, JSON.stringify(given)]);
  await recordAll(
    tx,
    written
      .filter(({ isNew }) => isNew)
      .map(({ id: subject, kind, order, generation }) => ({
        accountId: OPERATOR_ACCOUNT,
        subject,
        type: 'finding.reported',
        actor: SYSTEM,
        data: { kind, driver, ...(kind === 'CAPACITY' ? { host: order } : { orderNumber: order, generation }) },
      })),
  );
}

/** Reports a machine that was given up and cannot be removed. */
export const reportStuck = (tx: Transaction, driver: string, seen: Observation): Promise<void> =>
  report(tx, driver, [
    {
      kind: 'STUCK',
      order: seen.order,
      generation: seen.generation,
      detail: `The worker gave the machine up, and cannot remove it. ${seen.detail ?? `${seen.phase}, ${seen.power ?? 'power unknown'}`}`,
    },
  ]);

/** Resolves the findings of some kinds that were not found again, or those of the given machines. */
export async function resolve(
  tx: Transaction,
  driver: string,
  kinds: FindingKind[],
  found: Found[],
  machines?: MachineKey[],
): Promise<void> {
  if (machines) await RESOLVE_MACHINES.all(tx, [driver, kinds, machines.map(nameOf)]);
  else await RESOLVE_OTHERS.all(tx, [driver, kinds, found.map((one) => `${one.kind}.${nameOf(one)}`)]);
}

/** Opens the circuit breaker of an engine: the worker destroys no machine there until the operator closes it. */
export async function openBreaker(tx: Transaction, driver: string, reason: string): Promise<void> {
  if (await OPEN_BREAKER.first(tx, [driver, reason]))
    await record(tx, OPERATOR_ACCOUNT, driver, { type: 'engine.braked', actor: SYSTEM, data: { reason } });
}
