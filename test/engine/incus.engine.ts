/** The lxc driver and a customer's journey on a real Incus. Runs only if INCUS_ROOT names a folder of incus-root.sh. */
import { beforeAll } from 'vitest';
import { newDatabaseUrl } from '../setup/database.ts';
import { type Customer, newCustomer, startWorld, type UploadedKey, uploadKey } from './customer.ts';
import { describeJourney } from './journey.ts';
import { describeLxc } from './lxc/contract.ts';
import { type Lxd, startIncus } from './lxd.ts';

let incus: Lxd;
let customer: Customer;
let keys: readonly [UploadedKey, UploadedKey];

describeLxc('Incus', async () => {
  incus = await startIncus('incus', process.env.INCUS_ROOT!);
  return incus;
});

beforeAll(async () => {
  const environment = { LXC_ENDPOINTS: `unix:${incus.socketPath}`, LXC_POOL: 'machines', LXC_NETWORK: 'machines' };
  const world = await startWorld(await newDatabaseUrl(), environment, '10.79.0.0');
  customer = await newCustomer(world, 500);
  keys = [await uploadKey(customer, 'incus'), await uploadKey(customer, 'incus-2')];
});

const instances = async () => (await incus.call('GET', '/1.0/instances?project=freehold')) as string[];

describeJourney('A VPS on real Incus', () => ({ customer, keys, instances }));
