/**
 * From a change that was asked for to the state that it leads to: the machine is changed, and proof is waited for. A
 * change that fails leaves the server in the state that it came from, and says so.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Server, ServerChange } from '../../../entities/servers/server.ts';
import { done, hop, nap } from '../../tasks/tasks.ts';
import type { PowerChange } from '../drivers/driver.ts';
import { keyOf } from '../placement/spec.ts';
import { isPermanent, move } from './outcome.ts';
import { completeResize, undoResize } from './resize.ts';
import type { ServerStep } from './step.ts';

/** What `change` carries out: resuming is a step of its own. */
type CarriedOut = Exclude<ServerChange, { operation: 'resume' }>;

const POWER = { start: 'on', stop: 'off', reboot: 'restart', reset: 'reset' } as const satisfies Record<
  Exclude<CarriedOut['operation'], 'rebuild' | 'resize'>,
  PowerChange
>;

/** Has the machine changed; again, if it was changed before. */
export const change: ServerStep = async (task, { server, driver, specOf }) => {
  const asked = server.change as CarriedOut;
  const { id, operation } = asked;
  try {
    if (operation === 'rebuild' || operation === 'resize') {
      const spec = await specOf({ ...server, ...changedBy(asked) });
      await driver[operation](spec, id, task.aborted);
    } else await driver.power(keyOf(server), POWER[operation], id, task.aborted);
  } catch (error) {
    if (!isPermanent(error)) throw error;
    return hop('restore');
  }
  return hop('confirm');
};

/** Waits until the machine is what it should be. */
export const confirm: ServerStep = async (task, { server, driver, pollSeconds }) => {
  const seen = await driver.observe(keyOf(server), task.aborted);
  const reached = targetOf(server) === 'STOPPED' ? seen.power === 'off' : seen.proven;
  if (seen.phase !== 'present' || !reached) return nap(pollSeconds);
  return done({ commit: (tx) => succeed(tx, server) });
};

/** Turns the machine on or off as it was, if that can be done, and lets the server go back to the state before. */
export const restore: ServerStep = async (task, { server, driver }) => {
  const { id, from } = server.change!;
  await driver.power(keyOf(server), from === 'RUNNING' ? 'on' : 'off', `${id}-restore`, task.aborted).catch(() => {});
  return done({ commit: (tx) => fallBack(tx, server) });
};

const targetOf = ({ status }: Server) => (status === 'STOPPING' || status === 'RESIZING' ? 'STOPPED' : 'RUNNING');

/** What the server has when the change has come to a good end. */
function changedBy(change: CarriedOut): Partial<Server> {
  if (change.operation === 'resize')
    return { serviceCode: change.serviceCode, priceMonthMicros: BigInt(change.priceMonthMicros) };
  if (change.operation !== 'rebuild') return {};
  const { os, sshKeyIds, sshPublicKeys, userData } = change;
  return { os, sshKeyIds, sshPublicKeys, userData };
}

const ENDED = { change: null, rootPassword: null };

async function succeed(tx: Transaction, server: Server): Promise<void> {
  const change = server.change as CarriedOut;
  const { operation } = change;
  const set = { ...changedBy(change), ...ENDED, failureCode: null, failureMessage: null };
  const updated = operation === 'rebuild' || operation === 'resize';
  await move(tx, server, targetOf(server), set, { data: { operation }, ...(updated && { event: 'server.updated' }) });
  if (operation === 'resize') await completeResize(tx, server, change);
}

const DONE: Record<CarriedOut['operation'], string> = {
  start: 'started',
  stop: 'stopped',
  reboot: 'rebooted',
  reset: 'reset',
  rebuild: 'rebuilt',
  resize: 'resized',
};

/** The server is again in the state that it was in before the change, with the reason. */
export async function fallBack(tx: Transaction, server: Server): Promise<void> {
  const change = server.change as CarriedOut;
  const { operation, from } = change;
  const failureMessage = `The server could not be ${DONE[operation]}. Nothing was charged for that; try again later.`;
  const set = { ...ENDED, failureCode: `${operation}_failed`, failureMessage };
  await move(tx, server, from, set, { event: 'server.action_failed', data: { operation } });
  if (operation === 'resize') await undoResize(tx, server, change);
}
