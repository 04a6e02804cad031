/** Provisioning and one funded account over a database of their own, without listeners. */

import type { TestContext } from 'vitest';
import { expandScopes } from '../../entities/accounts/credential.ts';
import type { Database } from '../../entities/database/database.ts';
import { newId } from '../../entities/ids.ts';
import { available, gateway, openBalance, post } from '../../entities/payments/ledger.ts';
import { Vault } from '../../entities/secrets.ts';
import { Provisioning } from '../../provisioning/index.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import type { DriverErrorCode, HardwareDriver } from '../../provisioning/servers/drivers/driver.ts';
import { LoginThrottle } from '../../resolvers/accounts/auth/throttle.ts';
import type { Context } from '../../resolvers/context.ts';
import { RefusingDriver } from '../servers/drivers/refusing-driver.ts';
import { newDatabase } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';

export interface Shop {
  db: Database;
  context: Context;
  provisioning: Provisioning;
  accountId: string;
  driver: RefusingDriver;
  folder: string;
  url: string;
}

/** `onEnd` is the test's own hook: such tests run side by side. */
export type OnEnd = TestContext['onTestFinished'];

/** What an account of a shop has at first. */
export const FUNDS_MICROS = 20_000_000n;

/** Machines boot at once here, or never. */
const PROOF = { VPS: 0.1, DEDICATED: 0.1 };

export const LIMITS = {
  apiKeys: 10,
  servers: 25,
  sshKeys: 50,
  webhooks: 10,
  agentEntries: 10,
  pendingTopups: 5,
  sessions: 100,
  oauthClients: 20,
};

/** @param wrap what stands between the service and the driver */
export async function openShop(
  onEnd: OnEnd,
  refused: readonly string[],
  code?: DriverErrorCode,
  wrap: (driver: HardwareDriver) => HardwareDriver = (driver) => driver,
): Promise<Shop> {
  const db = await newDatabase(onEnd);
  const folder = newFolder();
  onEnd(() => removeFolder(folder));
  const driver = new RefusingDriver(folder, refused, code);
  const vault = new Vault(Buffer.alloc(32));
  const payments = [new SimulatedPayments({ confirmSeconds: 0 })];
  const hardware = wrap(driver);
  const drivers = { VPS: hardware, DEDICATED: hardware };
  const provisioning = new Provisioning({ db, vault, drivers, payments, pollSeconds: 0.02, proofSeconds: PROOF });
  await provisioning.prepare();
  const accountId = newId('acct');
  await db.transaction(async (tx) => {
    await openBalance(tx, accountId);
    const funds = {
      kind: 'topup',
      debit: gateway('test'),
      credit: available(accountId),
      amountMicros: FUNDS_MICROS,
      externalKey: 'funds',
      description: 'funds',
    } as const;
    await post(tx, accountId, [funds]);
  });
  const viewer = {
    accountId,
    kind: 'api_key',
    credentialId: 'key_test',
    name: 'test',
    scopes: expandScopes('full'),
    expiresAt: null,
  } as const;
  const context: Context = {
    db,
    vault,
    provisioning,
    limits: LIMITS,
    viewer,
    requestId: newId('req'),
    userAgent: null,
    signal: new AbortController().signal,
    stopping: new AbortController().signal,
    publicUrl: 'http://localhost:3000',
    logins: new LoginThrottle(10),
    address: null,
  };
  return { db, context, provisioning, accountId, driver, folder, url: (db.source.options as { url: string }).url };
}

/**
 * Does what is left to do, in this process, until the server is settled and nothing is left.
 * @param events how many it has at least by then, for a way that ends where it begins
 */
export async function finish({ db, provisioning }: Shop, orderNumber: string, ends: string, events = 0): Promise<void> {
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

/** What is written of a server: kinds of transfers, events, and what is held for all servers together. */
export async function traces({ db, accountId }: Shop, orderNumber: string) {
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
