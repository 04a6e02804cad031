/**
 * Moves of machines to another host of their engine. A machine that moves has claims on both hosts. Its own claim follows it at
 * the end, and the other one is given back.
 */
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import {
  LOCK_HOSTS_OF_MOVE,
  MOVE_PLACEMENT,
  NOTE_UNMOVED,
  READ_MOVE,
  RELEASE_MOVE,
} from '../../../entities/servers/placement.ts';
import type { Server } from '../../../entities/servers/server.ts';

/** A move of a machine. */
export interface Relocation {
  to: string;
  /** Whether it goes on. It does not if the operator has ended the evacuation, or the new host takes no machines any more. */
  open: boolean;
}

const STAYING: ReadonlySet<Server['status']> = new Set(['RUNNING', 'STOPPED', 'SUSPENDED']);

/** The move of a machine. A server that changes has none until its change ends. */
export async function readRelocation(
  db: Queryable,
  { status, change, host, orderNumber, generation }: Server,
): Promise<Relocation | undefined> {
  if (!STAYING.has(status) || change || !host) return undefined;
  return READ_MOVE.first(db, [orderNumber, generation]);
}

/**
 * Moves the claims of a machine to the host that it is on, and ends its move. It needs the lock of the server. The customer learns
 * of it, too, because the machine was off meanwhile.
 * @returns whether there was room
 */
export async function moveClaims(
  tx: Transaction,
  { orderNumber, generation, accountId, host }: Pick<Server, 'orderNumber' | 'generation' | 'accountId' | 'host'>,
  to: string,
  engine: string,
): Promise<boolean> {
  await LOCK_HOSTS_OF_MOVE.all(tx, [[to], orderNumber]);
  await RELEASE_MOVE.all(tx, [orderNumber]);
  const { moved } = (await MOVE_PLACEMENT.first(tx, [orderNumber, generation, to, engine]))!;
  if (!moved) return false;
  const data = { machine: orderNumber, from: host };
  await record(tx, OPERATOR_ACCOUNT, to, { type: 'host.updated', actor: SYSTEM, data });
  await record(tx, accountId, orderNumber, { type: 'server.updated', actor: SYSTEM, data: { operation: 'move' } });
  tx.changed({ kind: 'server', accountId, id: orderNumber });
  return true;
}

/** Ends the move of a machine that is as wanted: the claim follows it, or stays where it is. */
export async function endRelocation(
  tx: Transaction,
  server: Server,
  { to }: Relocation,
  host: string | undefined,
  engine: string,
): Promise<void> {
  if (host === to) await moveClaims(tx, server, to, engine);
  else await releaseRelocation(tx, server);
}

/** Gives back the room that a machine was to move to. */
export async function releaseRelocation(tx: Transaction, { orderNumber }: Pick<Server, 'orderNumber'>): Promise<void> {
  await LOCK_HOSTS_OF_MOVE.all(tx, [[], orderNumber]);
  await RELEASE_MOVE.all(tx, [orderNumber]);
}

/** Gives up a move that failed. The machine stays until the operator evacuates its host again. @returns whether there was one */
export async function giveUpRelocation(tx: Transaction, server: Server): Promise<boolean> {
  const { orderNumber, generation } = server;
  if (!(await readRelocation(tx, server))) return false;
  await releaseRelocation(tx, server);
  await NOTE_UNMOVED.all(tx, [orderNumber, generation]);
  return true;
}
