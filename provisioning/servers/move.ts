/** Moves of a server to another state, by the service itself. */
import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { type Move, transition } from '../../entities/history/transition.ts';
import { SERVER_LIFECYCLE, type Server } from '../../entities/servers/server.ts';
import { Conflict } from '../tasks/tasks.ts';

/** @throws Conflict if the state of the server does not allow the move any more, for example because it was deleted */
export async function move(
  tx: Transaction,
  server: Server,
  to: Server['status'],
  set: NonNullable<Move<Server>['set']>,
  more: Pick<Move<Server>, 'event' | 'data'> = {},
): Promise<Server> {
  const moved = await transition(tx, SERVER_LIFECYCLE, server.orderNumber, to, { actor: SYSTEM, set, ...more });
  if (!moved) throw new Conflict(`${server.orderNumber} cannot become ${to} any more.`);
  return moved;
}
