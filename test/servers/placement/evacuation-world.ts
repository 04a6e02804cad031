/** A cluster of pretended hosts, of which the operator evacuates the first. */
import { expect, onTestFinished } from 'vitest';
import { Finding } from '../../../entities/servers/finding.ts';
import { Host } from '../../../entities/servers/host.ts';
import { evacuateHost } from '../../../resolvers/servers/hosts.ts';
import { openEngines, SIZE } from './engine-world.ts';

export const NEVER = new AbortController().signal;

/** Opens a cluster with running servers on `c-1`, and the empty host `c-2`. */
export async function openCluster({ servers = 1, room = SIZE.memoryMb } = {}) {
  const shop = await openEngines(onTestFinished);
  await shop.add('c');
  const cluster = shop.engine('c');
  cluster.hosts = ['c-1', 'c-2'].map((name) => ({ name, state: 'online', size: SIZE }));
  await shop.look();
  const orders: string[] = [];
  for (let n = 0; n < servers; n++) orders.push(await shop.running());
  await shop.host('c-2', 'c', { memoryMb: room });
  const [order] = orders as [string];
  const machine = (of = order) => cluster.observe({ order: of, generation: 1 }, NEVER);
  return {
    ...{ ...shop, cluster, orders, order, machine },
    evacuate: () => evacuateHost(shop.operator, 'c-1'),
    /** The machines and the memory that each host has claimed. */
    claims: async () =>
      (await shop.db.source.manager.find(Host, { order: { name: 'ASC' } })).map(({ machines, claimedMemoryMb }) => [
        machines,
        claimedMemoryMb,
      ]),
    /** Looks at the engine, and does all work that follows. */
    move: async () => {
      await shop.look();
      await shop.work();
      await shop.db.query(`update task set run_at = now() where subject not like 'cron:%'`);
      await shop.work();
    },
    findings: async () =>
      (await shop.db.source.manager.findBy(Finding, { kind: 'MISPLACED' })).map(
        ({ orderNumber, detail, resolvedAt }) => [
          ...[orderNumber, detail.replace('The machine stays on c-1. ', ''), resolvedAt === null],
        ],
      ),
    moves: () => cluster.journal().filter((line) => line.startsWith('move')).length,
    tasks: async () => (await shop.db.query(`select from task where subject not like 'cron:%'`)).length,
    updates: async (of = order) =>
      (
        await shop.db.query<{ data: object }>(`select data from event where subject = $1 and type = 'server.updated'`, [
          of,
        ])
      ).map(({ data }) => data),
  };
}
type Shop = Awaited<ReturnType<typeof openCluster>>;
/** The claims of one machine, and of none. */
export const [ONE, NONE] = [
  [1, 2048],
  [0, 0],
];

/** Expects that the server runs on `c-2`, has its claim there alone, and its customer was told once. */
export async function hasMoved(shop: Shop) {
  expect(await shop.placeOf(shop.order)).toEqual(['c', 'c-2']);
  expect(await shop.machine()).toMatchObject({ power: 'on', host: 'c-2' });
  expect(await shop.claims()).toEqual([NONE, ONE]);
  expect([shop.moves(), await shop.tasks()]).toEqual([1, 0]);
  expect(await shop.updates()).toEqual([{ operation: 'move' }]);
}
