/** The page of metrics: its readers, its counts, its figures, and the absence of everything personal. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { LOST_LEASES } from '../../entities/monitoring/measures.ts';
import { Metrics } from '../../entities/monitoring/metrics.ts';
import { asSuperuser, newDatabaseUrl } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { openShop } from '../setup/shop.ts';

const METRICS_TOKEN = 'a-token-for-the-metrics-alone';
const { db, internalUrl, publicUrl, operatorToken, newAccount, anonymous, operator } = await startFreehold({
  METRICS_TOKEN,
});

const read = (token?: string) =>
  fetch(`${internalUrl}/metrics`, token ? { headers: { authorization: `Bearer ${token}` } } : {});
const page = async () => (await read(METRICS_TOKEN)).text();
/** The figures of a read hold for five seconds. */
const figure = (line: string | RegExp) => expect.poll(page, { timeout: 20_000 }).toMatch(line);
/** The value of a series, 0 without one. */
const sampleOf = (text: string, series: string): number =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')
      .at(-1) ?? 0,
  );

describe('The metrics', () => {
  it('are for the bearer of METRICS_TOKEN and for operators', async () => {
    const { accessToken } = await newAccount();
    const statuses = [undefined, 'wrong', accessToken, METRICS_TOKEN, operatorToken].map(
      async (token) => (await read(token)).status,
    );
    expect(await Promise.all(statuses)).toEqual([401, 401, 403, 200, 200]);
    expect((await read()).headers.get('www-authenticate')).toBe('Bearer');
    expect((await fetch(`${publicUrl}/metrics`)).status).toBe(404);
  });

  it('count the calls of each facade by operation and status', async () => {
    const { accessToken, rest, graphql } = await newAccount();
    const before = await page();
    await rest('GET', '/v1/account/balance');
    await anonymous('GET', '/v1/account/balance');
    await fetch(`${publicUrl}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'get_balance', arguments: { access_token: accessToken } },
      }),
    });
    await graphql('{ account { id } }');
    await graphql('mutation { deleteServer(orderNumber: "SRV-NONE") { __typename } }');
    const after = await page();
    const grown = (labels: string) =>
      sampleOf(after, `freehold_requests_total{${labels}}`) - sampleOf(before, `freehold_requests_total{${labels}}`);
    expect({
      read: grown('facade="rest",operation="GetBalance",status="200"'),
      refused: grown('facade="rest",operation="GetBalance",status="401"'),
      tool: grown('facade="mcp",operation="GetBalance",status="200"'),
      account: grown('facade="graphql",operation="account",status="200"'),
      unknown: grown('facade="graphql",operation="deleteServer",status="404"'),
    }).toEqual({ read: 1, refused: 1, tool: 1, account: 1, unknown: 1 });
    expect(after).toMatch(/freehold_request_seconds_bucket\{facade="rest",operation="GetBalance",le="\+Inf"\} \d/);
  });

  it('have one series for all paths that do not exist, and no path of a caller', async () => {
    for (let i = 0; i < 20; i++) await fetch(`${publicUrl}/canary-${i}/acct_1?email=heron@example.org`);
    const text = await page();
    expect(text).not.toContain('canary-');
    // Another test in this process may have had other statuses.
    const series = text.match(/freehold_requests_total\{facade="http",operation="unknown path",status="404"/g);
    expect(series).toHaveLength(1);
  });

  it('have no id, no e-mail, no token and no network address after the work of a customer', async () => {
    const account = await newAccount();
    await account.topUp(100);
    const { body: server } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'web' });
    const read = () => account.rest('GET', `/v1/servers/${server.order_number}`);
    await eventually(async () => (await read()).body.status === 'running');
    const text = await page();
    for (const call of ['create', 'observe'])
      expect(text).toMatch(
        new RegExp(`freehold_driver_calls_total\\{kind="engine",driver="simulated",call="${call}",outcome="ok"\\} `),
      );
    expect(text).not.toMatch(/acct_|SRV-|TOP-|svc_|@|\b\d+\.\d+\.\d+\.\d+\b/);
    expect(text).not.toMatch(/req_|hostname|web\b/);
  });

  it('tell how long tasks wait, and how many were given up', async () => {
    await db.query(
      `insert into task (id, lane, process, subject, account_id, step, run_at, state, error) values
        ('waits', 'agents', 'none', 'waits', 'acct_x', 'none', now() - interval '1 hour', 'READY', null),
        ('dead', 'none', 'none', 'dead', 'acct_x', 'none', now(), 'DEAD', 'It failed.')`,
    );
    onTestFinished(async () => void (await db.query(`delete from task where account_id = 'acct_x'`)));
    await figure(/freehold_tasks_stuck\{state="DEAD"\} [1-9]/);
    expect(await page()).toMatch(/freehold_tasks_due\{lane="servers"\} \d/);
  });

  it('tell of the canary, the backup and an open circuit breaker', async () => {
    expect(await page()).not.toMatch(/^freehold_(canary_left_seconds|backup_age_seconds|circuit_breakers) /m);
    await operator(
      `mutation { publishCanary(input: {statement: "We have received no order.", codes: [CEASE]}) { version } }`,
    );
    await operator('mutation { noteBackup { createdAt } }');
    await asSuperuser(db, `insert into brake (driver, reason) values ('simulated', 'many machines are gone')`);
    onTestFinished(async () => void (await asSuperuser(db, 'delete from brake')));
    await figure(/^freehold_circuit_breakers\{engine="simulated"\} 1$/m);
    const text = await page();
    expect(sampleOf(text, 'freehold_canary_left_seconds')).toBeGreaterThan(34 * 24 * 3600);
    expect(sampleOf(text, 'freehold_backup_age_seconds')).toBeLessThan(3600);
    expect(text).toMatch(/^freehold_payments\{state="UNMATCHED"\} 0$/m);
  });

  it('count a lost lease', async () => {
    const lost = () => LOST_LEASES.series.get('servers')?.count ?? 0;
    const shop = await openShop(onTestFinished);
    const accountId = await shop.account(0n);
    const order = await shop.server(accountId);
    await shop.db.transaction((tx) =>
      shop.provisioning.servers.reconcile(tx, { orderNumber: order, accountId } as never),
    );
    const worker = shop.provisioning.newWorker();
    const [lease] = await worker.lease('servers');
    await shop.db.query(`update task set fence = fence + 1, leased_by = 'another'`);
    const before = lost();
    await worker.run(lease!);
    expect(lost()).toBe(before + 1);
  });

  it('of a process without its database tell that it is away', async () => {
    const away = await Database.open(await newDatabaseUrl(), { poolSize: 1 });
    await away.close();
    const { text } = await new Metrics({ db: away, lanes: [], networks: [] }).page();
    expect(text).toMatch(/^freehold_database_up 0$/m);
    expect(text).toMatch(/^process_cpu_seconds_total /m);
    expect(text).not.toMatch(/^freehold_tasks_due/m);
  });

  it.skipIf(spawnSync('promtool', ['--version']).error)('are as promtool wants them', async () => {
    const own = (await page()).split('\n').filter((line) => /^(# \w+ )?freehold_/.test(line));
    const { stdout, stderr, status } = spawnSync('promtool', ['check', 'metrics'], { input: `${own.join('\n')}\n` });
    expect({ status, output: `${stdout}${stderr}` }).toEqual({ status: 0, output: '' });
  });
});

describe('The worker proves the books', () => {
  it('once a day, and the metrics tell the end of the last proof', async () => {
    const shop = await openShop(onTestFinished);
    await shop.account(5_000_000n);
    const status = async () => {
      await shop.tick('books-proof');
      return (await shop.db.query(`select status from health where component = 'books'`))[0];
    };
    expect(await status()).toBeUndefined();
    expect(await status()).toEqual({ status: 'operational' });
    await asSuperuser(shop.db, 'update balance set available_micros = available_micros + 1');
    expect(await status()).toEqual({ status: 'major_outage' });
  });
});
