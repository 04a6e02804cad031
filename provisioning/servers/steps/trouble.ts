/**
 * The engine's own words about a failed call. The log and the server keep them, for the operator, also after the task ends. The
 * task keeps them until its next step.
 */
import { NOTE_TROUBLE } from '../../../entities/servers/operator-lists.ts';
import { textOf } from '../../tasks/lease.ts';
import { DriverError } from '../drivers/driver.ts';
import type { Work } from './step.ts';

const CHARACTERS_MAX = 500;

/** Whether the engine did not answer, so its machines are unknown. */
export const isOutage = (error: unknown): boolean => error instanceof DriverError && error.code === 'unreachable';

/** The message of an error, as it is stored. */
export const wordsOf = (error: unknown): string => textOf(error).replaceAll('\0', '').slice(0, CHARACTERS_MAX);

/** Notes an error of a driver. Errors of the service itself belong to the worker. */
export async function noteTrouble(
  { db, server, driver, log }: Pick<Work, 'db' | 'server' | 'log'> & { driver: Pick<Work['driver'], 'name'> },
  error: unknown,
): Promise<void> {
  if (!(error instanceof DriverError)) return;
  const text = wordsOf(error);
  log(`${server.orderNumber}, ${server.status}, engine "${driver.name}": ${error.code}: ${text}`);
  await NOTE_TROUBLE.all(db, [server.orderNumber, text]);
}
