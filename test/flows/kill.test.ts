/** kill -9 at every step of every way that a server can go, and what is true after a restart. Generated, not chosen. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyBooks } from '../../entities/ledger.ts';
import type { ServerStatus } from '../../entities/server.ts';
import { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';
import { serverProcess } from '../../provisioning/servers/process.ts';
import { resumeAffordable } from '../../provisioning/servers/resume.ts';
import { suspend } from '../../provisioning/servers/suspend.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { updateServer } from '../../resolvers/servers/update.ts';
import { eventually } from '../freehold.ts';
import { MACHINE, newFolder, removeFolder, restClient, spawnService } from '../spawn.ts';
import { FUNDS_MICROS, finish, type OnEnd, openShop, type Shop, traces } from './shop.ts';

const MOMENTS = ['before', 'called', 'committing', 'committed'] as const;
type Step = keyof ReturnType<typeof serverProcess>['steps'];

interface Way {
  /** Which steps it has; together the ways have all steps of the process. */
  steps: Step[];
  refuse?: string;
  /** What is asked for, after the server has come to each of these states in turn. */
  asks?: [from: ServerStatus, ask: (shop: Shop, orderNumber: string) => Promise<unknown>][];
  ends: ServerStatus;
  transfers: string[];
  events: string[];
  /** What was really done to machines. */
  journal: string[];
  /** What is left of the funds, at least. */
  leavesUsd: number;
}
const ORDERED = ['created', 'provisioning', 'running'];
const stop: NonNullable<Way['asks']>[number] = [
  'RUNNING',
  ({ context }, orderNumber) => updateServer(context, orderNumber, { powerState: 'OFF' }),
];
const resize: NonNullable<Way['asks']>[number] = [
  'STOPPED',
  ({ context }, orderNumber) => updateServer(context, orderNumber, { serviceCode: 'vps-2' }),
];

const suspendFrom = (status: 'RUNNING' | 'STOPPED'): NonNullable<Way['asks']>[number] => [
  status,
  ({ db, accountId }, orderNumber) =>
    db.transaction((tx) => suspend(tx, { kind: 'VPS', orderNumber, accountId, status }, 'insufficient_balance')),
];
const resume: NonNullable<Way['asks']>[number] = [
  'SUSPENDED',
  ({ db, accountId }) => db.transaction((tx) => resumeAffordable(tx, accountId)),
];

const WAYS: Record<string, Way> = {
  'an order': {
    steps: ['claim', 'create', 'prove'],
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: ORDERED,
    journal: ['create'],
    leavesUsd: 14,
  },
  'an order that the driver refuses': {
    steps: ['claim', 'create', 'clean'],
    refuse: 'create',
    ends: 'FAILED',
    transfers: ['hold', 'release'],
    events: ['created', 'provisioning', 'failed'],
    journal: [],
    leavesUsd: 20,
  },
  'an order whose first machine never gives proof': {
    steps: ['prove', 'restart', 'remake', 'replace'],
    refuse: 'silent',
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: ORDERED,
    journal: ['create', 'reset', 'rebuild', 'destroy', 'create'],
    leavesUsd: 14,
  },
  'an order whose first machine is stuck': {
    steps: ['create', 'replace'],
    refuse: 'stuck',
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: ORDERED,
    journal: ['create', 'off', 'create'],
    leavesUsd: 14,
  },
  'a deletion': {
    steps: ['destroy'],
    asks: [['RUNNING', ({ context }, orderNumber) => deleteServer(context, orderNumber)]],
    ends: 'DELETED',
    transfers: ['hold', 'capture', 'refund'],
    events: [...ORDERED, 'updated', 'deleted'],
    journal: ['create', 'destroy'],
    leavesUsd: 19,
  },
  'a rebuild': {
    steps: ['change', 'confirm'],
    asks: [['RUNNING', ({ context }, orderNumber) => updateServer(context, orderNumber, { action: 'REBUILD' })]],
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'updated', 'updated'],
    journal: ['create', 'rebuild'],
    leavesUsd: 14,
  },
  'a resize': {
    steps: ['change', 'confirm'],
    asks: [stop, resize],
    ends: 'STOPPED',
    transfers: ['hold', 'capture', 'hold', 'capture'],
    events: [...ORDERED, 'updated', 'stopped', 'updated', 'updated'],
    journal: ['create', 'off', 'resize'],
    leavesUsd: 8,
  },
  'a resize that the driver refuses': {
    steps: ['change', 'restore'],
    refuse: 'resize',
    asks: [stop, resize],
    ends: 'STOPPED',
    transfers: ['hold', 'capture', 'hold', 'release'],
    events: [...ORDERED, 'updated', 'stopped', 'updated', 'action_failed'],
    journal: ['create', 'off', 'off'],
    leavesUsd: 14,
  },
  'a suspension': {
    steps: ['suspend'],
    asks: [suspendFrom('RUNNING')],
    ends: 'SUSPENDED',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'suspended'],
    journal: ['create', 'off'],
    leavesUsd: 14,
  },
  'the resumption of a server that ran': {
    steps: ['resume'],
    asks: [suspendFrom('RUNNING'), resume],
    ends: 'RUNNING',
    transfers: ['hold', 'capture', 'renewal', 'capture'],
    events: [...ORDERED, 'suspended', 'running', 'renewed'],
    journal: ['create', 'off', 'on'],
    leavesUsd: 8,
  },
  'the resumption of a server that was stopped': {
    steps: ['resume'],
    asks: [stop, suspendFrom('STOPPED'), resume],
    ends: 'STOPPED',
    transfers: ['hold', 'capture', 'renewal', 'capture'],
    events: [...ORDERED, 'updated', 'stopped', 'suspended', 'stopped', 'renewed'],
    journal: ['create', 'off', 'off', 'off'],
    leavesUsd: 8,
  },
};
const HOLDS: Partial<Record<ServerStatus, [addresses: number, places: number]>> = { FAILED: [0, 0], DELETED: [0, 0] };

/** A worker process that kills itself; resolves with the signal that ended it. */
async function killedAt(onEnd: OnEnd, { url, folder }: Shop, environment: Record<string, string>): Promise<string> {
  const worker = spawn(process.execPath, [join(import.meta.dirname, 'killed-worker.ts')], {
    env: { ...MACHINE, DATABASE_URL: url, FOLDER: folder, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onEnd(() => void worker.kill('SIGKILL'));
  return (await once(worker, 'exit'))[1];
}

describe.each(Object.entries(WAYS))('kill -9 during %s', (_, way) => {
  const { steps, refuse = '', asks = [], ends } = way;
  const moments = steps.flatMap((step) => MOMENTS.map((moment) => [step, moment] as const));

  it.concurrent.for(moments)(
    'at the step %s, %s: after a restart everything has happened once',
    async ([step, moment], { onTestFinished: onEnd }) => {
      const shop = await openShop(onEnd, [refuse]);
      const order = { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true };
      const { orderNumber } = (await orderServer(shop.context, order)).server;
      for (const [from, ask] of asks) {
        await finish(shop, orderNumber, from);
        await ask(shop, orderNumber);
      }
      const environment = { REFUSE: refuse, KILL_STEP: step, KILL_MOMENT: moment };
      expect(await killedAt(onEnd, shop, environment)).toBe('SIGKILL');
      await finish(shop, orderNumber, ends);

      const { transfers, events, addresses, places, balance } = await traces(shop, orderNumber);
      expect({ transfers, events }).toEqual({ transfers: way.transfers, events: way.events });
      const journal = shop.driver.journal().map((line) => line.split(' ')[0]);
      expect(journal).toEqual(way.journal);
      expect([addresses, places]).toEqual(HOLDS[ends] ?? [2, 1]);
      expect(balance.held).toBe(0n);
      expect(balance.available).toBeGreaterThanOrEqual(BigInt(way.leavesUsd) * 1_000_000n);
      expect(balance.available).toBeLessThanOrEqual(FUNDS_MICROS);
      expect((await verifyBooks(shop.db)).balanced).toBe(true);
    },
  );
});

it('the ways above have every step that a server has', async () => {
  const { context } = await openShop(onTestFinished, []);
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
});
