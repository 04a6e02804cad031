/** kill -9 at every step of every way that an order can go, and what is true after a restart. Generated, not chosen. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { available, gateway, openBalance, post, verifyBooks } from '../../entities/ledger.ts';
import { Vault } from '../../entities/secrets.ts';
import { newId } from '../../entities/ids.ts';
import { heldScopes } from '../../entities/credential.ts';
import type { Database } from '../../entities/database.ts';
import { Provisioning } from '../../provisioning/index.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';
import { serverProcess } from '../../provisioning/servers/process.ts';
import { LoginThrottle } from '../../resolvers/auth/throttle.ts';
import type { Context } from '../../resolvers/context.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { newDatabase } from '../database.ts';
import { RefusingDriver } from './refusing-driver.ts';
import { eventually } from '../freehold.ts';
import { newFolder, removeFolder, restClient, spawnService } from '../spawn.ts';

const MOMENTS = ['before', 'called', 'committing', 'committed'] as const;
type Step = keyof ReturnType<typeof serverProcess>['steps'];

/** Which steps each way has; together they are all steps of the process. */
const WAYS = {
  'an order': { steps: ['claim', 'create', 'prove'], refuse: false, remove: false, ends: 'RUNNING' },
  'an order that the driver refuses': {
    steps: ['claim', 'create', 'clean'],
    refuse: true,
    remove: false,
    ends: 'FAILED',
  },
  'a deletion': { steps: ['destroy'], refuse: false, remove: true, ends: 'DELETED' },
} as const satisfies Record<string, { steps: Step[]; refuse: boolean; remove: boolean; ends: string }>;

interface Shop {
  db: Database;
  context: Context;
  provisioning: Provisioning;
  accountId: string;
  driver: SimulatedDriver;
  folder: string;
  url: string;
}

/** `onEnd` is the test's own hook: these tests run side by side. */
type OnEnd = TestContext['onTestFinished'];

async function openShop(onEnd: OnEnd, refuse: boolean): Promise<Shop> {
  const db = await newDatabase(onEnd);
  const folder = newFolder();
  onEnd(() => removeFolder(folder));
  const driver = refuse ? new RefusingDriver(folder) : new SimulatedDriver({ folder, bootSeconds: 0.05 });
  const vault = new Vault(Buffer.alloc(32));
  const payments = new SimulatedPayments({ confirmSeconds: 0 });
  const provisioning = new Provisioning({
    db,
    vault,
    drivers: { VPS: driver, DEDICATED: driver },
    payments,
    pollSeconds: 0.02,
  });
  await provisioning.prepare();
  const accountId = newId('acct');
  await db.transaction(async (tx) => {
    await openBalance(tx, accountId);
    const funds = {
      kind: 'topup',
      debit: gateway('test'),
      credit: available(accountId),
      amountMicros: 10_000_000n,
      externalKey: 'funds',
      description: 'funds',
    } as const;
    await post(tx, accountId, [funds]);
  });
  const limits = {
    apiKeys: 10,
    servers: 25,
    sshKeys: 50,
    webhooks: 10,
    agentEntries: 10,
    pendingTopups: 5,
    sessions: 100,
    oauthClients: 20,
  };
  const viewer = {
    accountId,
    kind: 'api_key',
    credentialId: 'key_test',
    name: 'test',
    scopes: heldScopes('full'),
    expiresAt: null,
  } as const;
  const context: Context = {
    db,
    vault,
    provisioning,
    limits,
    publicUrl: 'http://localhost:3000',
    logins: new LoginThrottle(10),
    viewer,
    requestId: newId('req'),
    userAgent: null,
    address: null,
    signal: new AbortController().signal,
    stopping: new AbortController().signal,
  };
  return { db, context, provisioning, accountId, driver, folder, url: (db.source.options as { url: string }).url };
}

/** A worker process that kills itself; resolves with the signal that ended it. */
async function killedAt(onEnd: OnEnd, { url, folder }: Shop, environment: Record<string, string>): Promise<string> {
  const worker = spawn(process.execPath, [join(import.meta.dirname, 'killed-worker.ts')], {
    env: { PATH: process.env.PATH, DATABASE_URL: url, FOLDER: folder, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onEnd(() => void worker.kill('SIGKILL'));
  return (await once(worker, 'exit'))[1];
}

/** Does what is left to do, in this process, until the server is settled and nothing is left. */
async function finish({ db, provisioning }: Shop, orderNumber: string, ends: string): Promise<void> {
  const worker = provisioning.newWorker({ leaseSeconds: 1 });
  worker.start();
  await eventually(async () => {
    const [found] = await db.query<{ status: string; tasks: number }>(
      'select status, (select count(*)::int from task) as tasks from server where order_number = $1',
      [orderNumber],
    );
    return found!.status === ends && found!.tasks === 0;
  }, 30);
  await worker.stop();
}

describe.each(Object.entries(WAYS))('kill -9 during %s', (_, { steps, refuse, remove, ends }) => {
  const moments = steps.flatMap((step) => MOMENTS.map((moment) => [step, moment] as const));

  it.concurrent.for(moments)(
    'at the step %s, %s: after a restart everything has happened once',
    { timeout: 60_000 },
    async ([step, moment], { onTestFinished: onEnd }) => {
      const shop = await openShop(onEnd, refuse);
      const { server } = await orderServer(shop.context, {
        serviceCode: 'vps-1',
        os: 'debian-13',
        labels: {},
        autoRenew: true,
      });
      if (remove) {
        await finish(shop, server.orderNumber, 'RUNNING');
        await deleteServer(shop.context, server.orderNumber);
      }
      const environment = { ...(refuse && { REFUSE: 'yes' }), KILL_STEP: step, KILL_MOMENT: moment };
      expect(await killedAt(onEnd, shop, environment)).toBe('SIGKILL');
      await finish(shop, server.orderNumber, ends);

      const { db, driver, accountId } = shop;
      const kinds = (
        await db.query<{ kind: string }>('select kind from transfer where order_number = $1 order by id', [
          server.orderNumber,
        ])
      ).map(({ kind }) => kind);
      const events = (
        await db.query<{ type: string }>('select type from event where subject = $1 order by id', [server.orderNumber])
      ).map(({ type }) => type);
      expect(new Set(events).size).toBe(events.length);
      expect(kinds).toEqual(
        refuse ? ['hold', 'release'] : remove ? ['hold', 'capture', 'refund'] : ['hold', 'capture'],
      );
      expect(driver.journal().filter((line) => line.startsWith('create'))).toHaveLength(refuse ? 0 : 1);
      expect(driver.journal().filter((line) => line.startsWith('destroy'))).toHaveLength(remove ? 1 : 0);
      const [{ held, claimed }] = (await db.query<{ held: number; claimed: number }>(
        'select (select count(*)::int from address where held_by is not null) as held, (select sum(claimed)::int from stock) as claimed',
      )) as [{ held: number; claimed: number }];
      expect([held, claimed]).toEqual(ends === 'RUNNING' ? [2, 1] : [0, 0]);
      const [balance] = await db.query<{ available: bigint; held: bigint }>(
        'select available_micros as available, held_micros as held from balance where account_id = $1',
        [accountId],
      );
      expect(balance!.held).toBe(0n);
      expect(balance!.available >= (refuse ? 10_000_000n : 4_000_000n)).toBe(true);
      expect((await verifyBooks(db)).balanced).toBe(true);
    },
  );
});

it('the ways above have every step that a server has', async () => {
  const { context } = await openShop(onTestFinished, false);
  const driver = new SimulatedDriver({ folder: newFolder(), bootSeconds: 0 });
  const process = serverProcess({
    db: context.db,
    vault: context.vault,
    drivers: { VPS: driver, DEDICATED: driver },
    pollSeconds: 1,
  });
  const covered = new Set<string>(Object.values(WAYS).flatMap(({ steps }) => [...steps]));
  expect(Object.keys(process.steps).sort()).toEqual([...covered].sort());
});

it('the whole service with its embedded database is killed while an order is under way, and goes on where it was', async () => {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const environment = {
    DATA_DIR: folder,
    SIMULATED_PROVISION_SECONDS: '1',
    SIMULATED_PAYMENT_SECONDS: '0',
    LEASE_SECONDS: '1',
  };
  const first = await spawnService(environment);
  const { body: registered } = await restClient(first.url)('POST', '/v1/auth/register', {
    email: 'k@example.org',
    password: 'a heron on the roof',
  });
  const credential = registered.tokens.access_token;
  const rest = restClient(first.url, credential);
  await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
  await eventually(async () => (await rest('GET', '/v1/account/balance')).body.balance_usd === 30);
  const { body: ordered } = await rest('POST', '/v1/servers', { service_code: 'vps-1' });
  await first.kill();
  const second = await spawnService(environment);
  const again = restClient(second.url, credential);
  const { body: running } = await again('GET', `/v1/servers/${ordered.order_number}?wait_for=running`);
  expect(running.status).toBe('running');
  expect((await again('GET', '/v1/account/balance')).body.balance_usd).toBe(24);
  expect(await second.stop()).toBe(0);
}, 60_000);
