/** A shop with several engines: simulated machines that count as real ones. */
import { join } from 'node:path';
import type { Engine } from '../../../entities/servers/engine.ts';
import {
  DriverError,
  type EngineReport,
  type HostReport,
  type Observation,
  type Reading,
} from '../../../provisioning/servers/drivers/driver.ts';
import type { ImageStore } from '../../../provisioning/servers/drivers/image-store.ts';
import { OBSERVER_PROCESS } from '../../../provisioning/servers/reconcile/observe.ts';
import type { Context } from '../../../resolvers/context.ts';
import { addAddressPool } from '../../../resolvers/servers/address-pools.ts';
import { addEngine } from '../../../resolvers/servers/engines.ts';
import { addHost } from '../../../resolvers/servers/hosts.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { finish, openCustomerShop } from '../../setup/customer-shop.ts';
import type { OnEnd } from '../../setup/spawn.ts';
import { RefusingDriver } from '../drivers/refusing-driver.ts';

export class PretendEngine extends RefusingDriver {
  override readonly simulated = false;
  override readonly name: string;
  hosts: HostReport[] = [];
  images: string[] = ['debian-13'];
  /** The hosts of machines, by their orders. */
  readonly where = new Map<string, string>();
  down = false;

  constructor(folder: string, name = 'lxc') {
    super(join(folder, name), []);
    this.name = name;
  }
  override async list(): Promise<Observation[]> {
    if (this.down) throw new DriverError('unreachable', `${this.name} does not answer.`);
    return (await super.list()).map((one) => {
      const host = this.where.get(one.order);
      return { ...one, ...(host && { host }) };
    });
  }
  override async capacity(): Promise<HostReport[]> {
    return this.hosts;
  }
  /** The sent bytes of orders, for the meter. */
  readonly sent = new Map<string, number>();
  override async meter(): Promise<Reading[]> {
    if (this.down) throw new DriverError('unreachable', `${this.name} does not answer.`);
    const rest = { receivedBytes: 0, sentPackets: 0, cpuNs: null, memoryBytes: null, diskBytes: null, portMbps: null };
    const epoch = `${this.name}-1`;
    return [...this.sent].map(([order, sentBytes]) => ({ order, generation: 1, epoch, sentBytes, ...rest }));
  }
  /** The fingerprints of the images that the service brought, by their aliases. */
  readonly brought = new Map<string, string>();
  /** Thrown after an image came, as if the worker died before it heard of that. */
  imageFault: Error | undefined;
  readonly imageStore: ImageStore = {
    import: async ({ alias, virtualMachine, origin }, signal) => {
      if (this.down) throw new DriverError('unreachable', `${this.name} does not answer.`);
      let fingerprint = `${origin.sha256}`;
      if ('server' in origin) fingerprint = `${origin.server} ${origin.alias} ${virtualMachine}`;
      else for await (const _ of origin.download(signal));
      this.brought.set(alias, fingerprint);
      this.images = [...new Set([...this.images, alias])];
      if (this.imageFault) throw this.imageFault;
      return fingerprint;
    },
    withdraw: async ({ alias }) => {
      if (this.down) throw new DriverError('unreachable', `${this.name} does not answer.`);
      this.brought.delete(alias);
      this.images = this.images.filter((one) => one !== alias);
      if (this.imageFault) throw this.imageFault;
    },
  };
  async about(): Promise<EngineReport> {
    return { product: 'INCUS', version: '6.0.4', images: this.images };
  }
}

export const SIZE = { vcpus: 8, memoryMb: 65_536, diskGb: 1000 };

/** The endpoint of another cluster, which has none of our machines. */
export const ELSEWHERE = 'unix:/elsewhere';

/** Opens a shop whose environment has one engine, `lxc`, with addresses in Zürich and Amsterdam. */
export async function openEngines(onEnd: OnEnd, options: Parameters<typeof openCustomerShop>[1] = {}) {
  const made = new Map<string, PretendEngine>();
  const connected: string[] = [];
  const connect = async ({ name, connection }: Engine) => {
    connected.push(name);
    return engine(name, connection!.endpoints[0] === ELSEWHERE ? 'elsewhere' : name);
  };
  const driver = (folder: string) => new PretendEngine(folder);
  const shop = await openCustomerShop(onEnd, { driver, connect, fundsMicros: 1_000_000_000n, ...options });
  made.set('lxc', shop.driver as PretendEngine);
  /** @param place the machines that it has */
  function engine(name: string, place = name): PretendEngine {
    if (!made.has(place)) made.set(place, new PretendEngine(join(shop.folder, place), name));
    return made.get(place)!;
  }
  const operator: Context = {
    ...shop.context,
    viewer: { ...shop.context.viewer!, accountId: null, kind: 'operator', credentialId: 'operator', name: null },
  };
  await shop.provisioning.schedule();
  for (const [region, cidr] of [
    ['zrh', '10.79.0.0/24'],
    ['ams', '10.80.0.0/24'],
  ] as const)
    await addAddressPool(operator, { region, cidr, gateway: null });
  const host = (name: string, of: string, more: object = {}) =>
    addHost(operator, { name, region: 'zrh', kind: 'VPS', engine: of, ...SIZE, ...more });
  const order = async (region = 'zrh', os = 'debian-13') =>
    (await orderServer(shop.context, { serviceCode: 'vps-1', region, os, labels: {}, autoRenew: true })).server
      .orderNumber;
  return {
    ...{ ...shop, driver: shop.driver as PretendEngine, connected, engine, operator, host, order },
    /** Adds an engine with a host of its name. */
    add: async (name: string, region = 'zrh') => {
      await addEngine(operator, { name, region, endpoints: [`unix:/${name}`] });
      await host(`${name}-1`, name, { region });
    },
    look: () => shop.tick(OBSERVER_PROCESS),
    /** Orders a server, and waits until it runs. */
    running: async (region?: string) => {
      const orderNumber = await order(region);
      await finish(shop, orderNumber, 'RUNNING');
      return orderNumber;
    },
    /** The engine and the host of a server. */
    placeOf: async (orderNumber: string) => {
      const { engine, host } = await shop.read(orderNumber);
      return [engine, host];
    },
  };
}
