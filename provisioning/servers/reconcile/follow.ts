/**
 * Follows machines that the operator, or their engine, has moved to another host. The books move with them, so each host counts
 * the machines that it has.
 */
import type { Database } from '../../../entities/database/database.ts';
import { LOCK_SERVER } from '../../../entities/servers/lock.ts';
import type { HostReport, Observation } from '../drivers/driver.ts';
import { moveClaims } from '../placement/relocation.ts';
import type { ExpectedMachine } from './expected.ts';
import type { Found } from './findings.ts';

/** The machines that are on another host than in the books. A single server has only one host, under any name. */
export function movedMachines(expected: ExpectedMachine[], seen: Map<string, Observation>, members: HostReport[]) {
  if (members.length < 2) return [];
  return expected.flatMap((machine) => {
    const to = seen.get(`${machine.order}.${machine.generation}`)?.host;
    return to && machine.host && to !== machine.host ? [{ ...machine, from: machine.host, to }] : [];
  });
}

/**
 * Moves the claims of machines to their new hosts, each in a transaction of its own.
 * @param engine its name
 * @returns findings about those whose new host is unknown, or has no room
 */
export async function follow(db: Database, engine: string, moved: ReturnType<typeof movedMachines>): Promise<Found[]> {
  const left: Found[] = [];
  for (const { order, generation, from, to } of moved) {
    const outcome = await db.transaction(async (tx) => {
      const server = await LOCK_SERVER.first(tx, [order]);
      if (server?.host !== from || server.generation !== generation || server.change) return 'changed';
      return (await moveClaims(tx, server, to, engine)) ? 'moved' : 'left';
    });
    const detail = `The machine is on ${to}, and its claim is on ${from}. The host ${to} is unknown, or has no room.`;
    if (outcome === 'left') left.push({ kind: 'MISPLACED', order, generation, detail });
  }
  return left;
}
