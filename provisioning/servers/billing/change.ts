/** The end of a change of a server: its columns, its money and its capacity. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { RESIZED_PRICE } from '../../../entities/servers/renewal.ts';
import { ERASED, type Server, type ServerChange } from '../../../entities/servers/server.ts';
import { move } from '../move.ts';
import { completeResize, undoResize } from './resize.ts';

/** The changes that end here. Resuming has an end of its own. */
export type Operation = Exclude<ServerChange['operation'], 'resume'>;

const ENDED = { change: null, ...ERASED };

const ENDS: Record<Operation, { status: 'RUNNING' | 'STOPPED'; done: string }> = {
  start: { status: 'RUNNING', done: 'started' },
  stop: { status: 'STOPPED', done: 'stopped' },
  reboot: { status: 'RUNNING', done: 'rebooted' },
  reset: { status: 'RUNNING', done: 'reset' },
  rebuild: { status: 'RUNNING', done: 'rebuilt' },
  resize: { status: 'STOPPED', done: 'resized' },
};

/** Ends a change that the machine has carried out. @param set the changed columns */
export async function completeChange(tx: Transaction, server: Server, set: Partial<Server>): Promise<void> {
  const change = server.change!;
  const operation = change.operation as Operation;
  const isUpdate = operation === 'rebuild' || operation === 'resize';
  const more = { data: { operation }, ...(isUpdate && { event: 'server.updated' as const }) };
  const price = operation === 'resize' ? RESIZED_PRICE : {};
  const well = { ...set, ...price, ...ENDED, remedy: null, failureCode: null, failureMessage: null };
  const status = change.endsOff ? 'STOPPED' : ENDS[operation].status;
  const { updatedAt } = await move(tx, server, status, well, more);
  if (change.operation === 'resize') await completeResize(tx, server, change, updatedAt);
}

/** A machine that an earlier change left half-made must exist before it has a size. */
const remedyOf = (operation: Operation, { remedy }: Server): Server['remedy'] =>
  operation === 'rebuild' ? 'rebuild' : (remedy ?? (operation === 'resize' ? 'resize' : null));

/** Returns a server to its state before a change that failed, with the reason and its money. The worker then mends the machine. */
export async function undoChange(tx: Transaction, server: Server): Promise<Server> {
  const change = server.change!;
  const operation = change.operation as Operation;
  const lost = operation === 'rebuild' ? ' Its data may be gone.' : '';
  const failureMessage = `The server could not be ${ENDS[operation].done}.${lost} You were not charged for it. Try again later.`;
  const set = { ...ENDED, remedy: remedyOf(operation, server), failureCode: `${operation}_failed`, failureMessage };
  const to = change.endsOff ? 'STOPPED' : change.from;
  const stable = await move(tx, server, to, set, { event: 'server.action_failed', data: { operation } });
  if (change.operation === 'resize') await undoResize(tx, server, change);
  return stable;
}
