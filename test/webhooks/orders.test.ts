/** Simultaneous requests of an account with webhooks. Every wait for a lock has a limit. */
import { expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { refusalsOf } from '../setup/queries.ts';
import { startReceiver } from '../setup/receiver.ts';

const freehold = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', LIMIT_SERVERS: '1000' });
const receiver = await startReceiver();
atEnd(() => receiver.close());

async function accountWithWebhook(usd: number): Promise<TestAccount> {
  const account = await freehold.newAccount();
  const { status } = await account.rest('POST', '/v1/webhooks', { url: receiver.url });
  expect(status).toBe(200);
  await account.fund(usd);
  return account;
}

/** The states of servers that messages show. */
const told = () =>
  new Set(receiver.received.map(({ body }) => `${body.data.object.order_number} ${body.type}`.replace('server.', '')));

it('two clients of an account with a webhook order, and PostgreSQL finds no deadlock', async () => {
  const account = await accountWithWebhook(1_000);
  const numbers: string[] = [];
  const order = async () => {
    for (let n = 0; n < 15; n++) {
      const { status, body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
      expect([status, body.code]).toEqual([200, undefined]);
      numbers.push(body.order_number);
    }
  };
  const refusals = await refusalsOf(async () => {
    await Promise.all([order(), order()]);
    await eventually(async () => numbers.every((number) => told().has(`${number} running`)));
  });
  expect(refusals).toEqual([]);
  expect(new Set(numbers).size).toBe(30);
});

it('simultaneous changes, reads and deletions of servers meet no deadlock', async () => {
  const account = await accountWithWebhook(1_000);
  const one = async () => {
    const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
    const path = `/v1/servers/${body.order_number}`;
    expect((await account.rest('GET', `${path}?wait_for=running`)).body.status).toBe('running');
    const answers = await Promise.all([
      account.rest('PATCH', path, { action: 'reboot' }),
      account.rest('DELETE', path),
      account
        .rest('POST', '/v1/auth/api-keys', { name: 'mine', scope: 'read' })
        .then(({ body: key }) => account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`)),
    ]);
    const codes = answers.map(({ status, body: { code } }) => code ?? status);
    expect([
      [200, 200, 200],
      ['server_busy', 200, 200],
      ['not_found', 200, 200],
    ]).toContainEqual(codes);
  };
  const refusals = await refusalsOf(async () => {
    for (let round = 0; round < 5; round++) await Promise.all([one(), one(), one()]);
  });
  expect(refusals).toEqual([]);
});

it('a worker finds and sends a delivery whose process died between its commit and the wakeup', async () => {
  const account = await accountWithWebhook(30);
  const { db } = freehold;
  const subject = newId('tok');
  const happening = { type: 'session.revoked', actor: SYSTEM } as const;
  const { wake } = db.waker;
  db.waker.wake = () => {};
  await db.transaction((tx) => record(tx, account.id, subject, happening)).finally(() => (db.waker.wake = wake));
  await db.query(`update webhook_delivery set created_at = now() - interval '1 minute' where status = 'PENDING'`);
  await db.query(`update task set run_at = now() where subject = 'cron:webhook-sweep'`);
  await eventually(async () => receiver.received.some(({ body }) => body.data.object.id === subject));
});
