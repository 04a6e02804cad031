/** The worker dies by kill -9 during deliveries: every event arrives at least once, always with the same id. */
import { randomBytes } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { startReceiver, verify } from '../setup/receiver.ts';
import { newFolder, removeFolder, restClient, spawnService } from '../setup/spawn.ts';

const EVENTS = 50;
const KILLS = 3;

it(`${EVENTS} events all arrive over ${KILLS} times kill -9`, async () => {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const environment = {
    DATA_DIR: folder,
    DATABASE_URL: await newDatabaseUrl(),
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    SECRET_KEY: randomBytes(32).toString('base64'),
    LEASE_SECONDS: '1',
  };
  const db = await Database.open(environment.DATABASE_URL);
  onTestFinished(() => db.close());
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  let service = await spawnService(environment);
  onTestFinished(() => service.kill().catch(() => {}));
  const { body: registered } = await restClient(service.url)('POST', '/v1/auth/register', {
    email: 'k@example.org',
    password: 'a heron on the roof',
  });
  const rest = restClient(service.url, registered.tokens.access_token);
  const { body: webhook } = await rest('POST', '/v1/webhooks', { url: receiver.url, event_filter: 'server.*' });

  const answering = () => (receiver.answer = (response) => void setTimeout(() => response.writeHead(204).end(), 30));
  answering();
  const sent = new Set<string>();
  const tell = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const happening = { type: 'server.updated', actor: SYSTEM } as const;
      sent.add(await db.transaction((tx) => record(tx, registered.account.id, `SRV-${i}`, happening)));
    }
  };
  await tell(EVENTS / 2);
  for (let kill = 1; kill <= KILLS; kill++) {
    const before = receiver.received.length;
    await eventually(async () => receiver.received.length >= before + 3);
    receiver.answer = () => {}; // these deliveries run when the process dies
    const answered = receiver.received.length;
    await eventually(async () => receiver.received.length > answered);
    await service.kill();
    if (kill === 1) await tell(EVENTS / 2);
    answering();
    service = await spawnService(environment);
  }
  const unfinished = () => db.query(`select from webhook_delivery where status <> 'SUCCEEDED'`);
  await eventually(async () => (await unfinished()).length === 0);
  const received = receiver.received.map(({ headers }) => headers['webhook-id']!);
  expect(new Set(received)).toEqual(sent);
  expect(sent.size).toBe(EVENTS);
  expect(received.length).toBeGreaterThan(EVENTS); // interrupted deliveries came again
  const bodies = Map.groupBy(receiver.received, ({ headers }) => headers['webhook-id']);
  for (const same of bodies.values()) expect(new Set(same.map(({ raw }) => raw)).size).toBe(1);
  for (const message of receiver.received) verify(webhook.secret, message);
});
