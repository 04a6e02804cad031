/** The metrics and the traffic of a server, as its customer reads them. */
import { expect, it } from 'vitest';
import { actOfOperator } from '../../setup/database.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';

const { db, newAccount } = await startFreehold();
const account = await newAccount();
await account.fund(100);
// The tests write the meter.
await db.query(`update task set run_at = now() + interval '1 day' where subject like 'cron:meter-%'`);

const order = async () =>
  (await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'web' })).body.order_number as string;
const SERVER = await order();
const path = (query = '') => `/v1/servers/${SERVER}/metrics${query}`;
const read = async (query = '') => (await account.rest('GET', path(query))).body;
const MONTH = new Date().toISOString().slice(0, 7);
const meter = (orderNumber: string, month: string, usedBytes: number) =>
  db.query(
    `insert into meter (order_number, epoch, read_at, month, used_bytes) values ($1, '', now(), $2, $3)
      on conflict (order_number) do update set month = excluded.month, used_bytes = excluded.used_bytes`,
    [orderNumber, month, usedBytes],
  );
const sample = (step: number, ago: string, sums: (number | null)[]) =>
  db.query(
    `insert into meter_sample (order_number, step, at, sent_bytes, received_bytes, cpu_ns, memory_bytes, disk_bytes)
      values ($1, $2, date_trunc('minute', now()) - $3::interval, $4, $5, $6, $7, $8)`,
    [SERVER, step, ago, ...sums],
  );

it('the traffic of the month is a member of the server, in every answer with the server', async () => {
  const [show, list, patch] = [
    async () => (await account.rest('GET', `/v1/servers/${SERVER}`)).body.traffic_used_gb,
    async () => (await account.rest('GET', '/v1/servers')).body.data[0].traffic_used_gb,
    async () => (await account.rest('PATCH', `/v1/servers/${SERVER}`, { labels: { a: 'b' } })).body.traffic_used_gb,
  ];
  for (const answer of [show, list, patch]) expect(await answer()).toBeNull();
  await db.query('update server set paid_until = now() + interval $$1 day$$ where order_number = $1', [SERVER]);
  await meter(SERVER, MONTH, 41_700_000_000);
  for (const answer of [show, list, patch]) expect(await answer()).toBe(41.7);
  await meter(SERVER, '2020-01', 41_700_000_000);
  for (const answer of [show, list, patch]) expect(await answer()).toBe(0);
});

it('a point has the use since the point before', async () => {
  await sample(60, '90 minutes', [1_000, 100, 5e9, 300, 700]);
  await sample(60, '10 minutes', [5_000, 150, 8e9, 400, 800]);
  await sample(60, '9 minutes', [5_500, 160, null, null, null]);
  const { points, ...rest } = await read();
  expect(points).toEqual([
    {
      at: expect.stringMatching(/:00\.000Z$/),
      ...{ sent_bytes: 4_000, received_bytes: 50, cpu_seconds: 3, memory_bytes: 400, disk_bytes: 800 },
    },
    {
      at: expect.any(String),
      ...{ sent_bytes: 500, received_bytes: 10, cpu_seconds: null, memory_bytes: null, disk_bytes: null },
    },
  ]);
  expect(rest).toMatchObject({ step: 'minute', slow: false });
  expect(Date.parse(rest.to) - Date.parse(rest.from)).toBe(3_600_000);
});

it('a range of more than a day has hours, unless the caller asks for minutes', async () => {
  await sample(3600, '50 hours', [0, 0, 0, 1, 1]);
  await sample(3600, '49 hours', [7, 8, 2e9, 1, 1]);
  const from = new Date(Date.now() - 72 * 3_600_000).toISOString();
  expect(await read(`?from=${from}`)).toMatchObject({ step: 'hour', points: [{ sent_bytes: 7, cpu_seconds: 2 }] });
  expect((await read(`?from=${from}&step=minute`)).points).toHaveLength(2);
  const to = new Date(Date.now() - 60 * 3_600_000).toISOString();
  expect((await read(`?from=${from}&to=${to}`)).points).toEqual([]);
  const wrong = await account.rest('GET', path(`?from=${to}&to=${from}`));
  expect([wrong.status, wrong.body.code]).toEqual([400, 'invalid_query']);
});

it('a server above its traffic is slow', async () => {
  await meter(SERVER, MONTH, 2_000_000_000_001);
  expect((await read()).slow).toBe(true);
  await meter(SERVER, '2020-01', 2_000_000_000_001);
  expect((await read()).slow).toBe(false);
});

it('a server without a meter has no points, and other accounts have no server', async () => {
  const bare = await order();
  const { status, body } = await account.rest('GET', `/v1/servers/${bare}/metrics`);
  expect([status, body.points, body.slow]).toEqual([200, [], false]);
  const stranger = await newAccount();
  expect((await stranger.rest('GET', path())).status).toBe(404);
});

it('the catalog shows the price of a TB above the traffic', async () => {
  const price = async () => (await account.rest('GET', '/v1/catalog/vps-1')).body.extra_traffic_tb_usd;
  expect(await price()).toBeNull();
  await db.query(`update catalog_item set details = details || '{"extraTbMicros": 2500000}' where code = 'vps-1'`);
  actOfOperator(db);
  await eventually(async () => (await price()) === 2.5);
});
