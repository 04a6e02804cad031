/** Machines that the operator moves within a cluster: the books follow them. */
import { expect, it, onTestFinished } from 'vitest';
import { Finding } from '../../../entities/servers/finding.ts';
import { Host } from '../../../entities/servers/host.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { finish } from '../../setup/customer-shop.ts';
import { openEngines, SIZE } from '../placement/engine-world.ts';

/** A cluster with the hosts `c-1`, `c-2` and the small `c-3`, and a server on `c-1`. */
async function openCluster() {
  const shop = await openEngines(onTestFinished);
  await shop.add('c');
  const cluster = shop.engine('c');
  cluster.hosts = ['c-1', 'c-2', 'c-3', 'c-4'].map((name) => ({ name, state: 'online', size: SIZE }));
  await shop.look();
  const orderNumber = await shop.running();
  await shop.host('c-2', 'c');
  await shop.host('c-3', 'c', { memoryMb: 1024 });
  const counts = async () =>
    (await shop.db.source.manager.find(Host, { order: { name: 'ASC' } })).map(
      ({ machines, claimedVcpus, claimedMemoryMb, claimedDiskGb }) => [
        machines,
        claimedVcpus,
        claimedMemoryMb,
        claimedDiskGb,
      ],
    );
  const findings = async () =>
    (await shop.db.source.manager.findBy(Finding, { kind: 'MISPLACED' })).map(({ kind, detail, resolvedAt }) => [
      kind,
      detail,
      resolvedAt,
    ]);
  return { ...shop, cluster, orderNumber, counts, findings };
}
const [MACHINE, NONE] = [
  [1, 1, 2048, 25],
  [0, 0, 0, 0],
];

it('A machine that the operator moved has its claim on the new host, and the deletion frees it there', async () => {
  const shop = await openCluster();
  shop.cluster.where.set(shop.orderNumber, 'c-2');
  expect(await shop.counts()).toEqual([MACHINE, NONE, NONE]);
  await shop.look();
  await shop.look();
  expect(await shop.placeOf(shop.orderNumber)).toEqual(['c', 'c-2']);
  expect(await shop.counts()).toEqual([NONE, MACHINE, NONE]);
  expect(await shop.findings()).toEqual([]);
  const [told] = await shop.db.query<{ data: object }>(
    `select data from event where type = 'host.updated' and subject = 'c-2' and data ? 'machine'`,
  );
  expect(told!.data).toEqual({ machine: shop.orderNumber, from: 'c-1' });
  await deleteServer(shop.context, shop.orderNumber);
  await finish(shop, shop.orderNumber, 'DELETED');
  expect(await shop.counts()).toEqual([NONE, NONE, NONE]);
});

it.each(['c-3', 'c-4', 'elsewhere'])(
  'A machine on %s, without room in the books, is misplaced until it moves back',
  async (to) => {
    const shop = await openCluster();
    shop.cluster.where.set(shop.orderNumber, to);
    await shop.look();
    expect(await shop.placeOf(shop.orderNumber)).toEqual(['c', 'c-1']);
    expect(await shop.counts()).toEqual([MACHINE, NONE, NONE]);
    expect(await shop.findings()).toEqual([['MISPLACED', expect.stringContaining(`is on ${to}`), null]]);
    shop.cluster.where.set(shop.orderNumber, 'c-1');
    await shop.look();
    expect(await shop.findings()).toEqual([['MISPLACED', expect.any(String), expect.any(Date)]]);
  },
);

it('The observer follows nothing on a single server, because the operator may give its host another name', async () => {
  const shop = await openCluster();
  shop.cluster.hosts = shop.cluster.hosts.slice(0, 1);
  shop.cluster.where.set(shop.orderNumber, 'another-name');
  await shop.look();
  expect(await shop.findings()).toEqual([]);
});

it('A machine with a change in progress is followed after its change', async () => {
  const shop = await openCluster();
  shop.cluster.where.set(shop.orderNumber, 'c-2');
  await shop.db.query(`update server set status = 'REBUILDING' where order_number = $1`, [shop.orderNumber]);
  await shop.look();
  expect(await shop.placeOf(shop.orderNumber)).toEqual(['c', 'c-1']);
});
