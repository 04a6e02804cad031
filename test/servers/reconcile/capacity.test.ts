/** The operator's figures for hosts, compared with those of the engine. */
import { expect, it, onTestFinished } from 'vitest';
import { Finding } from '../../../entities/servers/finding.ts';
import { addHost, removeHost, updateHost } from '../../../resolvers/servers/hosts.ts';
import { openEngines, SIZE } from '../placement/engine-world.ts';

async function openCluster() {
  const shop = await openEngines(onTestFinished);
  const open = async () =>
    (await shop.db.source.manager.find(Finding, { order: { orderNumber: 'ASC' } }))
      .filter(({ resolvedAt }) => !resolvedAt)
      .map(({ kind, orderNumber, detail }) => [kind, orderNumber, detail]);
  const tell = (...names: string[]) => {
    shop.driver.hosts = names.map((name) => ({ name, state: 'online', size: SIZE }));
    return shop.look();
  };
  return { ...shop, open, tell };
}

it('The operator hears once of a host that is sold as larger than it is, until that ends', async () => {
  const shop = await openCluster();
  await shop.host('n1', 'lxc', { vcpus: 16, memoryMb: 100_000, vcpuOvercommit: 4 });
  await shop.host('n2', 'lxc', { vcpuOvercommit: 8 });
  for (const _ of [1, 2]) await shop.tell('n1', 'n2');
  expect(await shop.open()).toEqual([
    ['CAPACITY', 'n1', 'The host sells 16 vCPUs of 8, 100000 MB of memory of 65536.'],
  ]);
  const told = await shop.db.query<{ data: object }>(`select data from event where type = 'finding.reported'`);
  expect(told.map(({ data }) => data)).toEqual([{ kind: 'CAPACITY', driver: 'lxc', host: 'n1' }]);
  await updateHost(shop.operator, 'n1', { vcpus: 8, memoryMb: 65_536 });
  await shop.tell('n1', 'n2');
  expect(await shop.open()).toEqual([]);
});

it('The operator hears of a host that its cluster does not have, and a silent member is no smaller', async () => {
  const shop = await openCluster();
  for (const name of ['n1', 'n2', 'typo']) await shop.host(name, 'lxc');
  shop.driver.hosts = [
    { name: 'n1', state: 'online', size: SIZE },
    { name: 'n2', state: 'offline', size: { vcpus: 0, memoryMb: 0, diskGb: 0 } },
  ];
  await shop.look();
  expect(await shop.open()).toEqual([['CAPACITY', 'typo', 'The engine has no host typo.']]);
  await removeHost(shop.operator, 'typo');
  await shop.look();
  expect(await shop.open()).toEqual([]);
});

it('The finding about a host stays the same while the host is offline', async () => {
  const shop = await openCluster();
  await shop.host('n1', 'lxc', { vcpus: 16 });
  await shop.host('n2', 'lxc');
  await shop.tell('n1', 'n2');
  const finding = ['CAPACITY', 'n1', 'The host sells 16 vCPUs of 8.'];
  shop.driver.hosts[0] = { name: 'n1', state: 'offline', size: { vcpus: 0, memoryMb: 0, diskGb: 0 } };
  await shop.look();
  expect(await shop.open()).toEqual([finding]);
  await shop.tell('n1', 'n2');
  expect(await shop.open()).toEqual([finding]);
  expect(await shop.db.query(`select type from event where type = 'finding.reported'`)).toHaveLength(1);
});

it('The operator hears of a pool without room for the largest machine beside itself, until there is room', async () => {
  const shop = await openCluster();
  await shop.host('n1', 'lxc');
  await shop.host('n2', 'lxc', { vcpus: 16 });
  for (const host of ['n1', 'n2', 'n2']) shop.driver.where.set(await shop.running(), host);
  const { diskGb } = (await shop.driver.list())[0]!.size!;
  const tellFree = (...free: number[]) => {
    shop.driver.hosts = free.map((diskFreeGb, i) => ({ name: `n${i + 1}`, state: 'online', size: SIZE, diskFreeGb }));
    return shop.look();
  };
  await tellFree(diskGb, diskGb - 1);
  const sold = 'The host sells 16 vCPUs of 8.';
  const cramped =
    `The pool of n2 has ${diskGb - 1} GB free, and its largest machine has a disk of ${diskGb} GB. ` +
    'A rebuild of that machine deletes it before the new one exists.';
  expect(await shop.open()).toEqual([['CAPACITY', 'n2', `${sold} ${cramped}`]]);
  await updateHost(shop.operator, 'n2', { vcpus: 8 });
  await tellFree(diskGb, diskGb - 1);
  expect(await shop.open()).toEqual([['CAPACITY', 'n2', cramped]]);
  expect(await shop.db.query(`select type from event where type = 'finding.reported'`)).toHaveLength(1);
  await tellFree(diskGb, diskGb);
  expect(await shop.open()).toEqual([]);
});

it('A single server has the pool of all machines, under any name', async () => {
  const shop = await openCluster();
  await shop.host('listed', 'lxc');
  await shop.running();
  await shop.tell('only');
  expect(await shop.open()).toEqual([]);
  shop.driver.hosts = [{ name: 'only', state: 'online', size: SIZE, diskFreeGb: 0 }];
  await shop.look();
  expect(await shop.open()).toEqual([
    ['CAPACITY', 'listed', expect.stringContaining('The pool of listed has 0 GB free')],
  ]);
});

it('A host without sizes gets those that its engine told', async () => {
  const shop = await openCluster();
  const unsized = { region: 'zrh', kind: 'VPS' } as const;
  await expect(addHost(shop.operator, { name: 'n1', ...unsized })).rejects.toMatchObject({ code: 'validation_failed' });
  await shop.tell('n1', 'n2');
  expect(await addHost(shop.operator, { name: 'n1', ...unsized })).toMatchObject(SIZE);
  expect(await addHost(shop.operator, { name: 'n2', ...unsized, diskGb: 500 })).toMatchObject({ ...SIZE, diskGb: 500 });
  await expect(addHost(shop.operator, { name: 'n3', ...unsized })).rejects.toMatchObject({ code: 'validation_failed' });
  await shop.tell('only');
  await removeHost(shop.operator, 'n2');
  await removeHost(shop.operator, 'n1');
  expect(await addHost(shop.operator, { name: 'by-another-name', ...unsized })).toMatchObject(SIZE);
  await shop.look();
  expect(await shop.open()).toEqual([]);
});
