/** kill -9 of the whole service with its embedded database, and its recovery. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { eventually } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';
import { say } from '../setup/say.ts';
import { newFolder, type RunningService, removeFolder, restClient, spawnService } from '../setup/spawn.ts';

const ORDERS = 40;
/** Regions with dozens of servers in stock each. */
const REGIONS = ['ams', 'zrh', 'kef', 'buh'];
/** The largest part of the start that may pass before PostgreSQL starts. It took two thirds once, and a seventh later. */
const BEFORE_POSTGRES_MAX = 0.4;

function settings(more: Record<string, string> = {}): Record<string, string> {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const quick = { SIMULATED_PROVISION_SECONDS: '0', SIMULATED_PAYMENT_SECONDS: '0', POLL_SECONDS: '0.02' };
  return { DATA_DIR: folder, TZ: 'UTC', ...quick, ...more };
}

/** Starts the service. It stops with its database at the end of the test. */
async function start(environment: Record<string, string>): Promise<RunningService> {
  const service = await spawnService(environment);
  onTestFinished(async () => {
    await service.stop();
  });
  return service;
}

async function newCustomer(url: string) {
  const { body } = await restClient(url)('POST', '/v1/auth/register', {
    email: 'k@example.org',
    password: 'a heron on the roof',
  });
  return body.tokens.access_token as string;
}

/** The time at which PostgreSQL last logged this text. */
function loggedAt({ dataDir }: RunningService, text: string): number {
  const lines = readFileSync(join(dataDir, 'postgres', 'log'), 'utf8').split('\n');
  return Date.parse(lines.findLast((line) => line.includes(text))!.slice(0, '2000-01-01 00:00:00.000 UTC'.length));
}

/** kill -9 of the PostgreSQL server, the parent of all sessions. Its sessions end when they notice. */
const killDatabase = ({ dataDir }: RunningService) =>
  process.kill(
    Number.parseInt(readFileSync(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8'), 10),
    'SIGKILL',
  );

it('A service that is killed with its database during orders recovers PostgreSQL while it loads, and every order runs', async () => {
  const environment = settings({ LIMIT_SERVERS: '1000' });
  const first = await start(environment);
  const credential = await newCustomer(first.url);
  const rest = restClient(first.url, credential);
  await rest('POST', '/v1/billing/topups', { amount_usd: 10_000, crypto: 'BTC' });
  await eventually(async () => (await rest('GET', '/v1/account/balance')).body.balance_usd >= 10_000);
  const answered: string[] = [];
  const order = async (region: string) => {
    for (;;) {
      const answer = await rest('POST', '/v1/servers', { service_code: 'vps-1', region }).catch(() => undefined);
      if (answer?.status !== 200) return; // the service was killed
      answered.push(answer.body.order_number);
    }
  };
  const orders = [...REGIONS, ...REGIONS].map(order);
  await eventually(async () => answered.length >= ORDERS);
  killDatabase(first);
  await first.kill();
  await Promise.all(orders);

  const began = Date.now();
  const second = await start(environment);
  const took = Date.now() - began;
  const [started, recovered] = ['starting PostgreSQL', 'ready to accept connections'].map(
    (text) => loggedAt(second, text) - began,
  ) as [number, number];
  say(
    `After kill -9: PostgreSQL started at ${started} ms, had recovered at ${recovered} ms; the service ran at ${took} ms.`,
  );
  expect(started / took).toBeLessThan(BEFORE_POSTGRES_MAX);
  expect(second.output()).toContain('it had crashed, and recovered');
  const again = restClient(second.url, credential);
  for (const orderNumber of answered)
    await eventually(async () => (await again('GET', `/v1/servers/${orderNumber}`)).body.status === 'running');
});

it('A service that is killed during a step continues that task at once, despite a long lease', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const environment = settings({ LEASE_SECONDS: '3600', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
  const first = await start(environment);
  const rest = restClient(first.url, await newCustomer(first.url));
  await rest('POST', '/v1/webhooks', { url: receiver.url, event_filter: '*' });
  receiver.answer = () => {}; // the step lasts until the process dies
  await rest('POST', '/v1/auth/api-keys', { name: 'laptop', scope: 'read' });
  await eventually(async () => receiver.received.length > 0);
  const [under] = receiver.received;
  await first.kill();
  receiver.answer = (response) => void response.writeHead(204).end();
  const before = receiver.received.length;
  const second = await start(environment);
  await eventually(async () =>
    receiver.received.slice(before).some(({ headers }) => headers['webhook-id'] === under!.headers['webhook-id']),
  );
  expect(second.output()).toContain('Restarted tasks of a process that died: ');
});
