/** The same order over a cluster of three, by HTTPS with pinned certificates, of which one is killed. */

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endpointOf } from '../../provisioning/servers/drivers/lxc/endpoint.ts';
import { LxcDriver } from '../../provisioning/servers/drivers/lxc/lxc.ts';
import { newDatabaseUrl } from '../database.ts';
import { codeOf } from '../drivers/contract.ts';
import { eventually } from '../freehold.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { type Customer, login, newCustomer, startWorld, type World } from './customer.ts';
import { newKey, ssh } from './lxd.ts';

let cluster: Cluster;
let world: World;
let customer: Customer;
let driver: LxcDriver;
/** Expects another certificate of the engine than it shows. */
let deceived: LxcDriver;
const key = newKey('cluster');
let keyId: string;
const never = new AbortController().signal;

const ends: (() => Promise<unknown>)[] = [];
const onEnd = (end: () => Promise<unknown>) => void ends.push(end);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

beforeAll(async () => {
  cluster = await startCluster();
  const { files, endpoints } = cluster;
  world = await startWorld(
    await newDatabaseUrl(onEnd),
    {
      LXC_ENDPOINTS: endpoints.join(','),
      LXC_CLIENT_CERT_FILE: files.certificate,
      LXC_CLIENT_KEY_FILE: files.key,
      LXC_SERVER_CERT_FILE: files.server,
      LXC_POOL: 'local',
      LXC_NETWORK: 'br0',
    },
    '10.78.0.0',
    onEnd,
  );
  const read = (file: string) => readFileSync(file, 'utf8');
  const tls = { certificate: read(files.certificate), key: read(files.key), serverCertificate: read(files.server) };
  const place = { project: 'default', pool: 'local', network: 'br0', nameservers: [] };
  driver = new LxcDriver({ ...place, endpoints: endpoints.map((text) => endpointOf(text, tls)) });
  const another = { ...tls, serverCertificate: tls.certificate };
  deceived = new LxcDriver({ ...place, endpoints: endpoints.map((text) => endpointOf(text, another)) });
  customer = await newCustomer(world, 500);
  keyId = await customer.upload(key.publicKey);
});

/** Orders, and logs in. The host is picked by a trigger, as the allocator would. */
async function sell(host?: string): Promise<{ orderNumber: string; ipv4: string }> {
  if (host)
    await world.db.query(
      `create or replace function pick() returns trigger as $$ begin new.host := '${host}'; return new; end $$ language plpgsql`,
    );
  if (host)
    await world.db.query('create or replace trigger pick before insert on server for each row execute function pick()');
  const orderNumber = await customer.order({ ssh_key_ids: [keyId] });
  const { status, ipv4 } = await customer.settled(orderNumber, 200);
  expect(status).toBe('running');
  expect(await login(ipv4, key.file, 'echo in')).toBe('in');
  await world.db.query('drop trigger if exists pick on server');
  return { orderNumber, ipv4 };
}
const observe = (order: string) =>
  driver.observe({ order, generation: 1 }, never).catch(({ code }) => ({ phase: code as string, host: undefined }));

describe('A cluster of three', () => {
  let first: { orderNumber: string; ipv4: string };

  it('reports its members, and makes machines where it is told to', async () => {
    expect((await driver.capacity(never)).map(({ name, state }) => `${name} ${state}`).sort()).toEqual([
      'n1 online',
      'n2 online',
      'n3 online',
    ]);
    first = await sell('n1');
    expect((await observe(first.orderNumber)).host).toBe('n1');
    const { orderNumber } = await sell('n2');
    expect((await observe(orderNumber)).host).toBe('n2');
    expect(await driver.list(never)).toHaveLength(2);
  });

  it('is spoken to only if it shows the certificate that was pinned', async () => {
    expect(await driver.reachable('zrh', never)).toBe(true);
    expect(await codeOf(deceived.list(never))).toBe('unreachable');
  });

  it('with one member killed: its machines are unknown, not absent, and others are sold', async () => {
    await cluster.members[0]!.kill();
    for (let look = 0; look < 5; look++) {
      expect((await observe(first.orderNumber)).phase).toMatch(/^(unknown|unreachable)$/);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    // The machine itself goes on, and the list still has it.
    expect(await ssh(first.ipv4, key.file, 'echo in')).toBe('in');
    const listed = await eventually(async () => driver.list(never).catch(() => undefined));
    expect(listed.find(({ order }) => order === first.orderNumber)).toMatchObject({ phase: 'unknown' });
    await sell('n3');
    await eventually(async () => {
      const hosts = await driver.capacity(never).catch(() => []);
      return hosts.find(({ name }) => name === 'n1')?.state === 'offline';
    }, 90);
  });

  it('does not take a machine for deleted before its member is back', async () => {
    await customer.rest('DELETE', `/v1/servers/${first.orderNumber}`);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const [held] = await world.db.query('select 1 from address where held_by = $1', [first.orderNumber]);
    expect(held).toBeDefined();
    await cluster.members[0]!.start();
    await eventually(async () => (await observe(first.orderNumber)).phase === 'absent', 200);
    await eventually(
      async () => (await world.db.query('select 1 from address where held_by = $1', [first.orderNumber])).length === 0,
      60,
    );
  });
});
