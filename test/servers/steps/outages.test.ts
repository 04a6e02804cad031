/** Engines that do not answer: the work waits for them, and delays no other. Their words stay for the operator. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DriverErrorCode } from '../../../provisioning/servers/drivers/driver.ts';
import { SERVER_LANE } from '../../../provisioning/servers/task.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { listTroubles } from '../../../resolvers/servers/findings.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { finish, openFaultyShop, startWorker, traces } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import { contextOf, LIMITS, type ShopOptions } from '../../setup/shop.ts';
import type { Call } from '../drivers/faulty-driver.ts';
import type { RefusingDriver } from '../drivers/refusing-driver.ts';

const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', autoRenew: true };

async function openAway(options: ShopOptions<RefusingDriver> = {}) {
  const lines: string[] = [];
  const shop = await openFaultyShop(onTestFinished, { log: (line) => void lines.push(line), ...options });
  const fails = (code: DriverErrorCode | null, ...calls: Call[]) => {
    shop.faulty.fault = (call) =>
      code && (!calls.length || calls.includes(call)) ? { kind: 'fail', code } : undefined;
  };
  const context = { ...shop.context, limits: { ...LIMITS, servers: 100 } };
  const order = async () => (await orderServer(context, ORDER)).server.orderNumber;
  const worker = shop.provisioning.newWorker();
  /** Runs the task some times, as its pauses end. @returns the pauses in seconds */
  const attempts = async (count: number) => {
    const pauses: number[] = [];
    for (let n = 0; n < count; n++) {
      await shop.db.query('update task set run_at = now()');
      for (const lease of await worker.lease(SERVER_LANE)) await worker.run(lease);
      const [task] = await shop.db.query<{ s: number }>(
        'select extract(epoch from run_at - now())::float8 s from task',
      );
      if (task) pauses.push(task.s);
    }
    return pauses;
  };
  return { shop, fails, order, attempts, lines };
}
type Away = Awaited<ReturnType<typeof openAway>>;

const BEGIN: Record<string, [ends: string, begin: (away: Away) => Promise<string>]> = {
  'an order': ['RUNNING', ({ order }) => order()],
  'a reboot': [
    'RUNNING',
    async ({ shop, order }) => {
      const orderNumber = await order();
      await finish(shop, orderNumber, 'RUNNING');
      await updateServer(shop.context, orderNumber, { action: 'REBOOT' });
      return orderNumber;
    },
  ],
  'a deletion': [
    'DELETED',
    async ({ shop, order }) => {
      const orderNumber = await order();
      await finish(shop, orderNumber, 'RUNNING');
      await deleteServer(shop.context, orderNumber);
      return orderNumber;
    },
  ],
};

describe('An engine that does not answer', () => {
  it.each(Object.entries(BEGIN))(
    'costs no attempt of %s, which ends when the engine is back',
    async (_, [ends, begin]) => {
      const away = await openAway();
      const { shop, fails, attempts } = away;
      const orderNumber = await begin(away);
      fails('unreachable');
      await attempts(1);
      const { status } = await shop.read(orderNumber);
      await attempts(12);
      expect((await shop.read(orderNumber)).status).toBe(status);
      fails(null);
      await shop.db.query('update task set run_at = now()');
      await finish(shop, orderNumber, ends);
      expect((await traces(shop, orderNumber)).events).not.toContain('action_failed');
    },
  );

  it('is asked again after growing pauses of two minutes at most, and a wipe that lasts, too', async () => {
    const { shop, fails, order, attempts } = await openAway({ pollSeconds: 2 });
    const orderNumber = await order();
    fails('unreachable');
    const pauses = await attempts(8);
    expect(pauses[0]).toBeGreaterThan(10);
    expect(pauses[2]).toBeGreaterThan(pauses[0]!);
    for (const pause of pauses) expect(pause).toBeLessThanOrEqual(150);
    expect(pauses.at(-1)).toBeGreaterThan(60);

    fails(null);
    await attempts(3);
    expect((await shop.read(orderNumber)).status).toBe('RUNNING');
    await deleteServer(shop.context, orderNumber);
    shop.faulty.fault = (call) =>
      call === 'destroy' ? { kind: 'lie', observation: { phase: 'incomplete' } } : undefined;
    const wipes = await attempts(6);
    expect(wipes[3]).toBeGreaterThan(wipes[0]! * 2);
  });

  it('leaves the proof of a machine its whole time', async () => {
    const { shop, fails, order, attempts } = await openAway({ proofSeconds: { VPS: 0.5, DEDICATED: 0.5 } });
    shop.driver.refused = ['mute'];
    const orderNumber = await order();
    await attempts(3);
    fails('unreachable');
    await attempts(2);
    await shop.db.query(`update task set data = data || jsonb_build_object('proofBy', now() - interval '1 minute')`);
    fails(null);
    await attempts(1);
    expect(shop.driver.journal()).toEqual([`create ${orderNumber} 1`]);
  });
});

describe('The words of an engine', () => {
  it('stay with the server and in the log when the task has ended', async () => {
    const { shop, fails, order, lines } = await openAway();
    fails('rejected', 'create');
    const orderNumber = await order();
    await finish(shop, orderNumber, 'FAILED');
    expect(await listTroubles(shop.context, 10)).toMatchObject([
      { orderNumber, status: 'FAILED', trouble: 'The test makes create fail.', troubleAt: expect.any(Date) },
    ]);
    expect(lines).toEqual([`${orderNumber}, PROVISIONING, engine "faulty": rejected: The test makes create fail.`]);
  });

  it('are on the task while it waits', async () => {
    const { shop, fails, order, attempts } = await openAway();
    await order();
    fails('unreachable', 'create');
    await attempts(2);
    expect(await shop.db.query('select error from task')).toEqual([{ error: 'The test makes create fail.' }]);
  });
});

it('Forty hosts that hang with twelve changes each do not delay an order on another', async () => {
  const { shop, order } = await openAway();
  const [accounts, serversOfAccount, hosts] = [20, 24, 40];
  const hung = new Set<string>();
  for (let account = 0; account < accounts; account++) {
    const accountId = await shop.account(0n);
    const change = async (_: unknown, n: number) => {
      const host = `bmc-${(account * serversOfAccount + n) % hosts}`;
      const orderNumber = await shop.server(accountId, {
        ...{ paidUntil: new Date(Date.now() + 86_400_000), host, status: 'REBOOTING' },
        change: { id: `change ${account} ${n}`, from: 'RUNNING', operation: 'reboot' },
      });
      hung.add(orderNumber);
      const server = { kind: 'VPS', orderNumber, accountId, host } as const;
      await shop.db.transaction((tx) => shop.provisioning.servers.reconcile(tx, server));
    };
    await Promise.all(Array.from({ length: serversOfAccount }, change));
  }
  const asked = new Set<string>();
  shop.faulty.fault = (_, key) => {
    if (!key || !hung.has(key.order)) return undefined;
    asked.add(key.order);
    return { kind: 'hang' };
  };
  const worker = shop.provisioning.newWorker();
  worker.start();
  onTestFinished(() => worker.stop(0.1));
  await eventually(async () => asked.size === 480);
  const orderNumber = await order();
  await eventually(async () => (await shop.read(orderNumber)).status === 'RUNNING');
  const waiting = await shop.db.query(`select from task where subject = any($1) and leased_by is not null`, [
    [...hung],
  ]);
  expect(waiting).toHaveLength(480);
});

it('The reboots of one account do not delay an order of another on the same host', async () => {
  const { shop } = await openAway();
  const host = { paidUntil: new Date(Date.now() + 86_400_000), host: 'lxd' };
  const hung = await Promise.all(
    Array.from({ length: 25 }, async () => {
      const orderNumber = await shop.server(shop.accountId, host);
      await updateServer(shop.context, orderNumber, { action: 'REBOOT' });
      return orderNumber;
    }),
  );
  shop.faulty.fault = (_, key) => (hung.includes(key?.order ?? '') ? { kind: 'hang' } : undefined);
  const other = await shop.account(0n);
  const orderNumber = await shop.server(other, host);
  const worker = startWorker(shop, onTestFinished);
  const begun = performance.now();
  await updateServer(contextOf(shop, other), orderNumber, { action: 'REBOOT' });
  await eventually(async () => (await shop.read(orderNumber)).change === null);
  expect(performance.now() - begun).toBeLessThan(5000);
  await worker.stop(0.1);
});
