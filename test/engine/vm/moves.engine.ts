/** A customer's virtual machine in a cluster, which the operator moves. It runs only if VM_IMAGE names an image (image.sh). */
import { beforeAll, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../../setup/database.ts';
import { eventually } from '../../setup/freehold.ts';
import { type Cluster, operatorOf, startCluster } from '../cluster.ts';
import {
  type Customer,
  login,
  lookAround,
  newCustomer,
  type Sold,
  startWorld,
  type UploadedKey,
  uploadKey,
  type World,
} from '../customer.ts';
import { runGuide } from '../guide.ts';
import { BOOT_SECONDS, offerVirtual, withImage, withinEmulation } from './engines.ts';

let cluster: Cluster;
let world: World;
let customer: Customer;
let key: UploadedKey;
let server: Sold;

beforeAll(async () => {
  cluster = await startCluster(withinEmulation);
  const [first] = cluster.members;
  await withImage(first!);
  const environment = { LXC_ENDPOINTS: `unix:${first!.socketPath}`, LXC_POOL: 'local', LXC_NETWORK: 'br0' };
  world = await startWorld(await newDatabaseUrl(), environment, '10.78.0.0');
  runGuide(world.service, 'for host in');
  await offerVirtual(world);
  customer = await newCustomer(world, 100);
  key = await uploadKey(customer, 'moved');
});

const call = (method: string, path: string, body?: object) =>
  cluster.members[1]!.call(
    method,
    `/1.0/instances/${server.order_number.toLowerCase()}-1${path}project=freehold`,
    body,
  );
const turn = (action: string) => call('PUT', '/state?', { action, force: true, timeout: -1 });
const machinesOf = async (name: string) =>
  (await operatorOf(world).hosts()).find((host) => host.name === name)?.machines;
const counted = (name: string) =>
  eventually(async () => {
    await lookAround(world);
    return (await machinesOf(name)) === 1;
  }, 100);

describe('A virtual machine in a cluster', () => {
  it('is ordered, and entered by SSH', async () => {
    await operatorOf(world).sellOn('n1');
    const orderNumber = await customer.order({ service_code: 'kvm-1', ssh_key_ids: [key.id] });
    server = await customer.settled(orderNumber, BOOT_SECONDS);
    expect(server).toMatchObject({ status: 'running', failure: null });
    expect(await login(server.ipv4, key.file, 'echo here >/root/trace; sync', BOOT_SECONDS)).toBe('');
    expect(await call('GET', '?')).toMatchObject({ type: 'virtual-machine', location: 'n1' });
    await counted('n1');
  });

  it('is followed to another member, to which the operator moves it, and is changed there', async () => {
    await operatorOf(world).sellOn('n1', 'n2', 'n3');
    await turn('stop');
    await call('POST', '?target=n2&', { name: `${server.order_number.toLowerCase()}-1`, migration: true });
    await turn('start');
    await counted('n2');
    expect(await machinesOf('n1')).toBe(0);
    expect(await login(server.ipv4, key.file, 'cat /root/trace', BOOT_SECONDS)).toBe('here');
    await customer.change(server.order_number, { action: 'reboot' }, 'running', BOOT_SECONDS);
    expect(await login(server.ipv4, key.file, 'cat /root/trace', BOOT_SECONDS)).toBe('here');
  });

  it('moves away by itself when the operator evacuates its host, and leaves nothing after its deletion', async () => {
    await operatorOf(world).sellOn('n1', 'n2');
    await operatorOf(world).evacuate('n2');
    await counted('n1');
    expect(await login(server.ipv4, key.file, 'cat /root/trace', BOOT_SECONDS)).toBe('here');
    await customer.rest('DELETE', `/v1/servers/${server.order_number}`);
    await eventually(
      async () => (await customer.rest('GET', `/v1/servers/${server.order_number}`)).status === 404,
      BOOT_SECONDS,
    );
    await eventually(async () => (await machinesOf('n1')) === 0);
  });
});
