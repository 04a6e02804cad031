/**
 * The steps of a change: the driver changes the machine, and the worker waits until it reports that. The customer may have
 * closed the SSH port, so a change needs no proof. After a change that fails, the
 * server returns to its earlier state, with the reason.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ERASED, type Server, type ServerChange } from '../../../entities/servers/server.ts';
import { done, hop, nap } from '../../tasks/tasks.ts';
import type { PowerChange } from '../drivers/driver.ts';
import { keyOf } from '../placement/spec.ts';
import { isPermanent, move } from './outcome.ts';
import { completeResize, undoResize } from './resize.ts';
import type { ServerStep } from './step.ts';
import { noteTrouble } from './trouble.ts';

/** The changes of these steps. Resuming has steps of its own. */
type CarriedOut = Exclude<ServerChange, { operation: 'resume' }>;

const POWER = { start: 'on', stop: 'off', reboot: 'restart', reset: 'reset' } as const satisfies Record<
  Exclude<CarriedOut['operation'], 'rebuild' | 'resize'>,
  PowerChange
>;

/** Tells the driver to change the machine. Drivers carry out a change once, even if this step repeats. */
export const change: ServerStep = async (task, work) => {
  const { server, driver, specOf } = work;
  const asked = server.change as CarriedOut;
  const { id, operation } = asked;
  try {
    if (operation === 'rebuild' || operation === 'resize') {
      const spec = await specOf({ ...server, ...changedBy(asked) });
      await driver[operation](spec, id, task.aborted);
    } else await driver.power(keyOf(server), POWER[operation], id, task.aborted);
  } catch (error) {
    if (!isPermanent(error)) throw error;
    await noteTrouble(work, task, error);
    return hop('restore');
  }
  return hop('confirm');
};

/** Waits until the machine has reached its target. */
export const confirm: ServerStep = async (task, { server, driver, pollSeconds }) => {
  const seen = await driver.observe(keyOf(server), task.aborted);
  const power = targetOf(server) === 'STOPPED' ? 'off' : 'on';
  if (seen.phase !== 'present' || seen.busy || seen.power !== power) return nap(pollSeconds);
  return done({ commit: (tx) => succeed(tx, server) });
};

/** Restores the power of the machine, if the driver can, and returns the server to its earlier state. */
export const restore: ServerStep = async (task, work) => {
  const { server, driver } = work;
  const { id, from } = server.change!;
  await driver
    .power(keyOf(server), from === 'RUNNING' ? 'on' : 'off', `${id}-restore`, task.aborted)
    .catch((error: unknown) => noteTrouble(work, task, error));
  return done({ commit: (tx) => fallBack(tx, server) });
};

const targetOf = ({ status }: Server) => (status === 'STOPPING' || status === 'RESIZING' ? 'STOPPED' : 'RUNNING');

/** The columns of the server after a successful change. */
function changedBy(change: CarriedOut): Partial<Server> {
  if (change.operation === 'resize')
    return { serviceCode: change.serviceCode, priceMonthMicros: BigInt(change.priceMonthMicros) };
  if (change.operation !== 'rebuild') return {};
  const { os, sshKeyIds, sshPublicKeys } = change;
  return { os, sshKeyIds, sshPublicKeys };
}

const ENDED = { change: null, ...ERASED };

async function succeed(tx: Transaction, server: Server): Promise<void> {
  const change = server.change as CarriedOut;
  const { operation } = change;
  const set = { ...changedBy(change), ...ENDED, failureCode: null, failureMessage: null };
  const updated = operation === 'rebuild' || operation === 'resize';
  const more = { data: { operation }, ...(updated && { event: 'server.updated' as const }) };
  const { updatedAt } = await move(tx, server, targetOf(server), set, more);
  if (operation === 'resize') await completeResize(tx, server, change, updatedAt);
}

const DONE: Record<CarriedOut['operation'], string> = {
  start: 'started',
  stop: 'stopped',
  reboot: 'rebooted',
  reset: 'reset',
  rebuild: 'rebuilt',
  resize: 'resized',
};

/** Returns the server to its state before the change, with the reason. */
export async function fallBack(tx: Transaction, server: Server): Promise<Server> {
  const change = server.change as CarriedOut;
  const { operation, from } = change;
  const failureMessage = `The server could not be ${DONE[operation]}. You were not charged for it. Try again later.`;
  const set = { ...ENDED, failureCode: `${operation}_failed`, failureMessage };
  const stable = await move(tx, server, from, set, { event: 'server.action_failed', data: { operation } });
  if (operation === 'resize') await undoResize(tx, server, change);
  return stable;
}
