/** A shop whose machines have the counters that the test sets. The tests move time in the database. */
import type { MachineKey, Reading } from '../../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../../provisioning/servers/drivers/simulated.ts';
import { METER_PROCESSES } from '../../../provisioning/servers/metering/meter.ts';
import { openShop, type Shop, type ShopOptions } from '../../setup/shop.ts';
import type { OnEnd } from '../../setup/spawn.ts';

export const TB = 1e12;
/** The traffic of vps-1. */
export const TIER_TB = 2;

/** Reports the counters of the test instead of its own. */
export class MeteredDriver extends SimulatedDriver {
  readonly counters = new Map<string, Partial<Reading>>();
  /** The changes of speed, such as `SRV-… 10`. */
  readonly speeds: string[] = [];
  /** Runs before each answer. */
  before: (signal: AbortSignal) => unknown = () => {};
  override async meter(signal: AbortSignal): Promise<Reading[]> {
    await this.before(signal);
    const machines = await super.meter(signal);
    return machines.flatMap((machine) => {
      const given = this.counters.get(machine.order);
      return given ? [{ ...machine, epoch: 'a', portMbps: machine.portMbps ?? 1000, ...given }] : [];
    });
  }
  override async setSpeed(key: MachineKey, portMbps: number): Promise<void> {
    await super.setSpeed(key, portMbps);
    this.speeds.push(`${key.order} ${portMbps}`);
  }
}

export interface MeteredShop extends Shop<MeteredDriver> {
  /** Adds a server that has been read once, with all its counters at 0. */
  metered(accountId: string, set?: Parameters<Shop['server']>[1]): Promise<string>;
  /** Sets counters of the machine, and lets the clock tick. */
  reads(orderNumber: string, counters: Partial<Reading>): Promise<void>;
  minute(kind?: 'VPS' | 'DEDICATED'): Promise<void>;
  used(orderNumber: string): Promise<number>;
  /** Moves the meter into an earlier month. */
  monthEnds(orderNumber: string): Promise<unknown>;
}

export async function openMeteredShop(
  onEnd: OnEnd,
  options: Omit<ShopOptions<MeteredDriver>, 'driver'> = {},
): Promise<MeteredShop> {
  const shop = await openShop(onEnd, { driver: (folder) => new MeteredDriver({ folder, bootSeconds: 0 }), ...options });
  const { db, driver } = shop;
  const minute = (kind: 'VPS' | 'DEDICATED' = 'VPS') => shop.tick(METER_PROCESSES[kind]);
  const reads = async (orderNumber: string, counters: Partial<Reading>) => {
    driver.counters.set(orderNumber, { ...driver.counters.get(orderNumber), ...counters });
    await minute();
  };
  return {
    ...shop,
    minute,
    reads,
    metered: async (accountId, set = {}) => {
      const orderNumber = await shop.server(accountId, { paidUntil: new Date(Date.now() + 86_400_000), ...set });
      await reads(orderNumber, { sentBytes: 0, receivedBytes: 0, sentPackets: 0, cpuNs: 0 });
      return orderNumber;
    },
    used: async (orderNumber) => {
      const [meter] = await db.query<{ used: number }>(
        'select used_bytes::float8 as used from meter where order_number = $1',
        [orderNumber],
      );
      return meter!.used;
    },
    monthEnds: (orderNumber) => db.query(`update meter set month = '2020-01' where order_number = $1`, [orderNumber]),
  };
}

/** Changes the details of vps-1. */
export const setTier = ({ db }: Pick<Shop, 'db'>, details: object) =>
  db.query(`update catalog_item set details = details || $1 where code = 'vps-1'`, [JSON.stringify(details)]);
