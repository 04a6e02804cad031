/** A shop with a customer who has money, and with running workers. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '../../entities/ids.ts';
import type { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';
import type { Worker } from '../../provisioning/tasks/worker.ts';
import type { Context } from '../../resolvers/context.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { FaultyDriver } from '../servers/drivers/faulty-driver.ts';
import type { RefusingDriver } from '../servers/drivers/refusing-driver.ts';
import { eventually } from './freehold.ts';
import { contextOf, openShop, type Shop, type ShopOptions } from './shop.ts';
import type { OnEnd } from './spawn.ts';

export interface CustomerShop extends Shop {
  accountId: string;
  context: Context;
}

/** The initial balance of the customer. */
export const FUNDS_MICROS = 20_000_000n;

/** Seconds that a machine has to prove that it booted. Machines boot at once here, or never. */
const PROOF_SECONDS = { VPS: 0.1, DEDICATED: 0.1 };

export async function openCustomerShop(
  onEnd: OnEnd,
  options: ShopOptions<RefusingDriver> & { fundsMicros?: bigint } = {},
): Promise<CustomerShop> {
  const { fundsMicros = FUNDS_MICROS, ...more } = options;
  const shop = await openShop(onEnd, { pollSeconds: 0.02, proofSeconds: PROOF_SECONDS, ...more });
  // The operator owns the catalog of a shop, also with engines that pass for real.
  await shop.db.query('update catalog_item set sample = false');
  await shop.provisioning.prepare();
  const accountId = await shop.account(fundsMicros);
  return { ...shop, accountId, context: contextOf(shop, accountId) };
}

/** @returns also `faulty`, a driver whose calls fail as the test demands */
export async function openFaultyShop(onEnd: OnEnd, options: Parameters<typeof openCustomerShop>[1] = {}) {
  let faulty!: FaultyDriver;
  const wrap = (driver: SimulatedDriver) => {
    faulty = new FaultyDriver(driver);
    return faulty;
  };
  return { ...(await openCustomerShop(onEnd, { ...options, wrap })), faulty };
}

/** A shop that another case uses after this one. */
export type ReusedShop<Kind extends CustomerShop = CustomerShop> = Kind & {
  /** A case that fails does not give back its shop, so no other one sees its traces. */
  giveBack(): void;
};

/**
 * Opens shops that cases use one after the other, each with a customer of its own. A new database costs more than most cases.
 * @param onEnd closes them all
 * @returns a function that takes a shop for a case, whose driver refuses these calls
 */
export function newShops<Kind extends CustomerShop>(onEnd: OnEnd, open: (onEnd: OnEnd) => Promise<Kind>) {
  const ends: Parameters<OnEnd>[0][] = [];
  const free: Kind[] = [];
  onEnd(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  return async (refuse = ''): Promise<ReusedShop<Kind>> => {
    const shop = free.pop() ?? (await open((end) => void ends.push(end)));
    shop.driver.refused = [refuse];
    await clear(shop);
    const accountId = await shop.account(FUNDS_MICROS);
    return { ...shop, accountId, context: contextOf(shop, accountId), giveBack: () => void free.push(shop) };
  };
}

/** Ends the servers, the machines and the clocks of the case before. */
async function clear({ db, folder }: Shop): Promise<void> {
  for (const file of readdirSync(folder)) rmSync(join(folder, file));
  await db.query(
    `with servers as (update server set status = 'DELETED' where status <> 'DELETED'),
        addresses as (update address set held_by = null where held_by is not null),
        places as (update place set order_number = null where order_number is not null)
      delete from task where subject like 'cron:%'`,
  );
}

/** Opens a faulty shop with a server that runs. */
export async function openFaultyServer(onEnd: OnEnd) {
  const shop = await openFaultyShop(onEnd, { fundsMicros: 100_000_000n, log: () => {} });
  const ordered = await orderServer(shop.context, { serviceCode: 'vps-1', os: 'debian-13', autoRenew: true });
  const key = { order: ordered.server.orderNumber, generation: 1 };
  await finish(shop, key.order, 'RUNNING');
  const machine = () => shop.driver.observe(key, new AbortController().signal);
  return { shop, order: key.order, key, machine };
}

/** Opens a case against a server. @returns the id of the case */
export async function openCase({ db, accountId }: Pick<CustomerShop, 'db' | 'accountId'>, order: string) {
  const id = newId('case');
  await db.query(
    `insert into abuse_case (id, account_id, order_number, source, address, occurred_at, body, deadline)
      values ($1, $2, $3, $1, '192.0.2.7', now(), 'It scans us.', now() + interval '1 day')`,
    [id, accountId, order],
  );
  return id;
}

/** Starts a worker that stops with the test. Its leases end soon after it is stopped in a step. */
export function startWorker({ provisioning }: Pick<Shop, 'provisioning'>, onEnd: OnEnd): Worker {
  const worker = provisioning.newWorker({ leaseSeconds: 1 });
  worker.start();
  onEnd(() => worker.stop(5));
  return worker;
}

/**
 * Does the remaining work in this process until the server is in a stable state.
 * @param events the least number of events by then, for changes that end in their first state
 */
export async function finish(
  { db, provisioning }: Pick<Shop, 'db' | 'provisioning'>,
  orderNumber: string,
  ends: string,
  events = 0,
): Promise<void> {
  const worker = provisioning.newWorker({ leaseSeconds: 1 });
  worker.start();
  await eventually(async () => {
    const [found] = await db.query<{ status: string; tasks: number; events: number }>(
      `select status, (select count(*)::int from task where subject not like 'cron:%') as tasks,
        (select count(*)::int from event where subject = $1) as events from server where order_number = $1`,
      [orderNumber],
    );
    return found!.status === ends && found!.tasks === 0 && found!.events >= events;
  });
  await worker.stop();
}

/** The records of a server: kinds of transfers, events, and the hold for all servers together. */
export async function traces({ db, accountId }: Pick<CustomerShop, 'db' | 'accountId'>, orderNumber: string) {
  const transfers = await db.query<{ kind: string }>('select kind from transfer where order_number = $1 order by id', [
    orderNumber,
  ]);
  const events = await db.query<{ type: string }>('select type from event where subject = $1 order by id', [
    orderNumber,
  ]);
  const [holds] = await db.query<{ addresses: number; places: number }>(
    `select (select count(*)::int from address where held_by is not null) as addresses,
      (select count(*)::int from place where order_number is not null) as places`,
  );
  const [balance] = await db.query<{ available: bigint; held: bigint }>(
    'select available_micros as available, held_micros as held from balance where account_id = $1',
    [accountId],
  );
  return {
    transfers: transfers.map(({ kind }) => kind),
    events: events.map(({ type }) => type.replace('server.', '')),
    ...holds!,
    balance: balance!,
  };
}
