/** All transitions of the contract's table, and no others, made by requests and the steps of the worker. */
import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { SERVER_LIFECYCLE, SERVER_STATUSES, type ServerStatus } from '../../../entities/servers/server.ts';
import { resumeAffordable } from '../../../provisioning/servers/billing/resume.ts';
import { suspend } from '../../../provisioning/servers/billing/suspend.ts';
import { SERVER_LANE } from '../../../provisioning/servers/task.ts';
import { takeMeasure } from '../../../resolvers/accounts/cases.ts';
import type { Context } from '../../../resolvers/context.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { type ServerUpdate, updateServer } from '../../../resolvers/servers/update.ts';
import { openCase, openCustomerShop } from '../../setup/customer-shop.ts';
import { atEnd } from '../../setup/end.ts';
import { LIMITS } from '../../setup/shop.ts';
import type { RefusedCall, Trouble } from '../drivers/refusing-driver.ts';

/** The contract's table, and one way by which the operator turns a server off. All states except DELETING and DELETED lead to DELETING. */
const TABLE: Record<ServerStatus, ServerStatus[]> = {
  PENDING: ['PROVISIONING', 'FAILED'],
  PROVISIONING: ['RUNNING', 'FAILED'],
  RUNNING: ['STOPPING', 'REBOOTING', 'REBUILDING', 'SUSPENDED'],
  STOPPED: ['STARTING', 'REBUILDING', 'RESIZING', 'SUSPENDED'],
  STARTING: ['RUNNING', 'STOPPED'],
  STOPPING: ['STOPPED', 'RUNNING'],
  REBOOTING: ['RUNNING', 'STOPPED'],
  REBUILDING: ['RUNNING', 'STOPPED'],
  RESIZING: ['STOPPED'],
  SUSPENDED: ['RUNNING', 'STOPPED'],
  FAILED: [],
  DELETING: ['DELETED'],
  DELETED: [],
};
for (const [from, to] of Object.entries(TABLE)) if (!/^DELET/.test(from)) to.push('DELETING');
const pairsOf = (table: Readonly<Record<ServerStatus, readonly ServerStatus[]>>) =>
  SERVER_STATUSES.flatMap((from) => table[from].map((to) => `${from} to ${to}`)).sort();

const shop = await openCustomerShop(atEnd, { fundsMicros: 10n ** 10n });
const context: Context = { ...shop.context, limits: { ...LIMITS, servers: 1000 } };

type Act = (orderNumber: string) => Promise<unknown>;
const worker = () => shop.provisioning.newWorker();
/** Works until no task is due. */
const work: Act = () => worker().drain(SERVER_LANE);
const patch =
  (update: ServerUpdate): Act =>
  (orderNumber) =>
    updateServer(context, orderNumber, update);
const [on, off] = [patch({ powerState: 'ON' }), patch({ powerState: 'OFF' })];
const [reboot, reset, rebuild] = (['REBOOT', 'RESET', 'REBUILD'] as const).map((action) => patch({ action })) as [
  Act,
  Act,
  Act,
];
const resize = patch({ serviceCode: 'vps-2' });
const remove: Act = (orderNumber) => deleteServer(context, orderNumber);
const complained: Act = async (orderNumber) => {
  const id = await openCase(shop, orderNumber);
  await takeMeasure(context, id, 'POWER_OFF', 'It scans.');
};
const unpaid: Act = async (orderNumber) => {
  const [{ status }] = (await shop.db.query('select status from server where order_number = $1', [orderNumber])) as [
    { status: ServerStatus },
  ];
  const server = { kind: 'VPS', orderNumber, accountId: shop.accountId, host: null, status } as const;
  return shop.db.transaction((tx) => suspend(tx, server, 'insufficient_balance'));
};
const paid: Act = () => shop.db.transaction((tx) => resumeAffordable(tx, shop.accountId));
const refuse =
  (...calls: (RefusedCall | Trouble)[]): Act =>
  async () => {
    shop.driver.refused = calls;
  };
const tooLate: Act = (orderNumber) =>
  shop.db.query(`update task set deadline_at = now() - interval '1 second' where subject = $1`, [orderNumber]);

const RUNS = ['PENDING', 'PROVISIONING', 'RUNNING'] as const;
const STOPS = [...RUNS, 'STOPPING', 'STOPPED'] as const;
const GOES = ['DELETING', 'DELETED'] as const;
const stopped = [work, off, work];

const WAYS: Record<string, [acts: Act[], path: ServerStatus[]]> = {
  'ordered and run': [[work], [...RUNS]],
  'refused by the driver': [
    [refuse('create'), work],
    ['PENDING', 'PROVISIONING', 'FAILED'],
  ],
  'failed and deleted': [
    [refuse('create'), work, remove, work],
    ['PENDING', 'PROVISIONING', 'FAILED', ...GOES],
  ],
  'deleted at once': [
    [remove, work],
    ['PENDING', ...GOES],
  ],
  'deleted while it is made': [
    [refuse('mute'), work, remove, work],
    ['PENDING', 'PROVISIONING', ...GOES],
  ],
  'run and deleted': [
    [work, remove, work],
    [...RUNS, ...GOES],
  ],
  stopped: [stopped, [...STOPS]],
  'stopped and deleted': [
    [...stopped, remove, work],
    [...STOPS, ...GOES],
  ],
  'not stopped, since the driver refuses': [
    [work, refuse('power'), off, work],
    [...RUNS, 'STOPPING', 'RUNNING'],
  ],
  'deleted while it stops': [
    [work, off, remove, work],
    [...RUNS, 'STOPPING', ...GOES],
  ],
  started: [
    [...stopped, on, work],
    [...STOPS, 'STARTING', 'RUNNING'],
  ],
  'not started, since the driver refuses': [
    [...stopped, refuse('power'), on, work],
    [...STOPS, 'STARTING', 'STOPPED'],
  ],
  'deleted while it starts': [
    [...stopped, on, remove, work],
    [...STOPS, 'STARTING', ...GOES],
  ],
  rebooted: [
    [work, reboot, work],
    [...RUNS, 'REBOOTING', 'RUNNING'],
  ],
  'reset, which the driver refuses': [
    [work, refuse('power'), reset, work],
    [...RUNS, 'REBOOTING', 'RUNNING'],
  ],
  'turned off by the operator while it reboots': [
    [work, reboot, complained, work],
    [...RUNS, 'REBOOTING', 'STOPPED'],
  ],
  'deleted while it reboots': [
    [work, reboot, remove, work],
    [...RUNS, 'REBOOTING', ...GOES],
  ],
  rebuilt: [
    [work, rebuild, work],
    [...RUNS, 'REBUILDING', 'RUNNING'],
  ],
  'rebuilt from stopped': [
    [...stopped, rebuild, work],
    [...STOPS, 'REBUILDING', 'RUNNING'],
  ],
  'rebuilt from stopped, which the driver refuses': [
    [...stopped, refuse('rebuild'), rebuild, work],
    [...STOPS, 'REBUILDING', 'STOPPED'],
  ],
  'deleted while it is rebuilt': [
    [work, rebuild, remove, work],
    [...RUNS, 'REBUILDING', ...GOES],
  ],
  resized: [
    [...stopped, resize, work],
    [...STOPS, 'RESIZING', 'STOPPED'],
  ],
  'resized, which the driver refuses': [
    [...stopped, refuse('resize'), resize, work],
    [...STOPS, 'RESIZING', 'STOPPED'],
  ],
  'deleted while it is resized': [
    [...stopped, resize, remove, work],
    [...STOPS, 'RESIZING', ...GOES],
  ],
  suspended: [
    [work, unpaid, work, paid, work],
    [...RUNS, 'SUSPENDED', 'RUNNING'],
  ],
  'suspended and paid at once': [
    [work, unpaid, paid, work],
    [...RUNS, 'SUSPENDED', 'RUNNING'],
  ],
  'suspended while stopped': [
    [...stopped, unpaid, work, paid, work],
    [...STOPS, 'SUSPENDED', 'STOPPED'],
  ],
  'suspended and deleted': [
    [work, unpaid, remove, work],
    [...RUNS, 'SUSPENDED', ...GOES],
  ],
  'deleted while it resumes': [
    [work, unpaid, work, paid, remove, work],
    [...RUNS, 'SUSPENDED', ...GOES],
  ],
  'not begun before its deadline': [
    [tooLate, work],
    ['PENDING', 'FAILED'],
  ],
};

const made = new Set<string>();
describe('A server', () => {
  it.each(Object.entries(WAYS))('%s', async (_, [acts, path]) => {
    shop.driver.refused = [];
    const order = { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true };
    const { orderNumber } = (await orderServer(context, order)).server;
    for (const act of acts) await act(orderNumber);
    const told = await shop.db.query<{ status: ServerStatus }>(
      `select data->>'status' as status from event where subject = $1 and data ? 'status' order by id`,
      [orderNumber],
    );
    const statuses = told.map(({ status }) => status);
    expect(statuses.filter((status, i) => status !== statuses[i - 1])).toEqual(path);
    for (const [i, to] of path.slice(1).entries()) made.add(`${path[i]} to ${to}`);
    const [left] = await shop.db.query(
      `select held_micros as held, (select status from server where order_number = $1) as status,
        (select count(*)::int from task where subject = $1) as tasks from balance`,
      [orderNumber],
    );
    expect(left).toEqual({ held: 0n, status: path.at(-1), tasks: 0 });
  });

  it('has made all transitions of the table by then, and no others, and the lifecycle has that table', async () => {
    expect([...made].sort()).toEqual(pairsOf(TABLE));
    expect(pairsOf(SERVER_LIFECYCLE.transitions)).toEqual(pairsOf(TABLE));
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
  });
});
