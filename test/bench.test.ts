/** The peers of the benchmark. A benchmark is not part of a test run, so a new field of an answer would break it unseen. */
import { expect, onTestFinished, test } from 'vitest';
import { compare, startPeer, startService } from '../bench/peers/compare.ts';
import { stops } from '../bench/run.ts';
import { seed } from '../bench/seed.ts';
import { Database } from '../entities/database/database.ts';
import { newDatabaseUrl } from './setup/database.ts';
import { newFolder, removeFolder } from './setup/spawn.ts';

test('the handwritten peer of the benchmark answers as the service does', async () => {
  const url = await newDatabaseUrl();
  onTestFinished(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });
  const folder = newFolder();
  stops.push(() => removeFolder(folder));
  const db = await Database.open(url, { poolSize: 1 });
  stops.push(() => db.close());
  const { reader, orderNumber, orderer } = await seed(db, 10);
  const peers = [await startService(url, folder), await startPeer('handwritten', url)];
  const order = { service_code: 'vps-1', region: 'zrh', hostname: 'web.example.org' };
  for (const one of [
    { account: reader, method: 'GET', path: `/v1/servers/${orderNumber}` },
    { account: reader, method: 'GET', path: '/v1/servers' },
    { account: orderer, method: 'POST', path: '/v1/servers', body: order },
  ] as const)
    expect(await compare(one, peers)).toHaveLength(2);
});
