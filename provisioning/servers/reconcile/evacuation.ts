/**
 * Moves machines away from hosts that the operator evacuates. It claims room for all of them at once, and starts the tasks of a
 * few. The task of its server moves a machine, so no other work on it goes on meanwhile.
 */
import type { Database } from '../../../entities/database/database.ts';
import { LOCK_SERVER } from '../../../entities/servers/lock.ts';
import {
  CLAIM_MOVE,
  FIND_LEAVING_MACHINES,
  LOCK_HOSTS_OF_ENGINES,
  READ_MOVE,
} from '../../../entities/servers/placement.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import type { HardwareDriver, HostReport, Observation } from '../drivers/driver.ts';
import { releaseRelocation } from '../placement/relocation.ts';
import { moveTask } from '../task.ts';
import { type Found, nameOf } from './findings.ts';

/** Machines of a host that move at once. */
const MOVES_MAX = 4;

/** Attempts without an answer from which on the operator hears of a move. The first ones last some minutes. */
const OUTAGES_MAX = 5;

type Leaving = Awaited<ReturnType<typeof FIND_LEAVING_MACHINES.all>>[number];

/**
 * Claims room for the machines of evacuated hosts, and starts their moves.
 * @param seen the machines as the engine has just listed them
 * @returns findings about machines that stay
 */
export async function evacuate(
  db: Database,
  driver: HardwareDriver,
  seen: ReadonlyMap<string, Observation>,
  members: readonly HostReport[],
): Promise<Found[]> {
  const leaving = await FIND_LEAVING_MACHINES.all(db, [driver.name]);
  const staying: Found[] = [];
  const stays = ({ order, generation, host }: Leaving, why: string) =>
    staying.push({ kind: 'MISPLACED', order, generation, detail: `The machine stays on ${host}. ${why}` });
  const isMoving = ({ task, to }: Leaving) => task === 'READY' && to !== null;
  for (const machine of leaving) {
    if (machine.task === 'DEAD') stays(machine, 'Its task is dead. Mend the cause, and then call `retryTask`.');
    else if (isMoving(machine) && machine.outages > OUTAGES_MAX)
      stays(machine, 'Its move waits for the engine, and other moves may wait for it. Its task has the error.');
  }
  const ready: Leaving[] = [];
  for (const machine of leaving.filter(({ task }) => task === null)) {
    const one = seen.get(nameOf(machine));
    if (machine.to !== null && !machine.open) await release(db, machine);
    else if (one?.phase !== 'present' || (one.host ?? machine.host) !== machine.host) continue;
    else if (one.stays) stays(machine, one.stays);
    else if (machine.to !== null) ready.push(machine);
    else if (machine.unmoved) stays(machine, 'A move failed, and `evacuateHost` tries it again.');
    else if (!driver.move || members.length < 2) stays(machine, 'Its engine has no other host.');
    else {
      const outcome = await claim(db, driver.name, machine, members);
      if (outcome === 'claimed') ready.push(machine);
      if (outcome === 'full') stays(machine, 'No other active host of its engine has room.');
    }
  }
  for (const [host, machines] of Map.groupBy(ready, ({ host }) => host)) {
    const underWay = leaving.filter((one) => one.host === host && isMoving(one)).length;
    for (const machine of machines.slice(0, Math.max(0, MOVES_MAX - underWay)))
      await db.transaction((tx) => startTask(tx, moveTask({ ...machine, orderNumber: machine.order })));
  }
  return staying;
}

/** Claims room on another host, unless the server has changed meanwhile. */
async function claim(
  db: Database,
  engine: string,
  { order, generation, host }: Leaving,
  members: readonly HostReport[],
): Promise<'changed' | 'claimed' | 'full'> {
  const online = members.filter(({ state }) => state === 'online').map(({ name }) => name);
  return db.transaction(async (tx) => {
    const server = await LOCK_SERVER.first(tx, [order]);
    if (server?.host !== host || server.generation !== generation || server.change) return 'changed';
    await LOCK_HOSTS_OF_ENGINES.all(tx, [[engine]]);
    if (await READ_MOVE.first(tx, [order, generation])) return 'changed';
    return (await CLAIM_MOVE.first(tx, [order, generation, online]))!.to === null ? 'full' : 'claimed';
  });
}

/** Gives back the room for a move that does not go on. */
async function release(db: Database, { order, generation }: Leaving): Promise<void> {
  await db.transaction(async (tx) => {
    const server = await LOCK_SERVER.first(tx, [order]);
    const relocation = await READ_MOVE.first(tx, [order, generation]);
    if (server && !server.change && relocation && !relocation.open) await releaseRelocation(tx, server);
  });
}
