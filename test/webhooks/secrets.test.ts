/** A webhook gets another secret while its receiver goes on. */
import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { type Received, type Receiver, startReceiver, verify } from '../setup/receiver.ts';

const freehold = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
const { db, newAccount } = freehold;
const receiver = await startReceiver();
atEnd(() => receiver.close());

const signs = (secret: string, received: Received): boolean => {
  try {
    verify(secret, received);
    return true;
  } catch {
    return false;
  }
};

async function setUp(to: Receiver = receiver) {
  const account = await newAccount();
  const { body } = await account.rest('POST', '/v1/webhooks', { url: to.url, event_filter: 'ssh_key.*' });
  const rotate = () => account.rest('POST', `/v1/webhooks/${body.id}/rotate-secret`);
  return { account, id: body.id as string, first: body.secret as string, rotate };
}

/** The message of a test, which the account sends now. */
async function messageOf(account: TestAccount, id: string): Promise<Received> {
  const { body } = await account.rest('POST', `/v1/webhooks/${id}/test`);
  expect(body.delivered).toBe(true);
  return receiver.received.find(({ headers }) => headers['webhook-id'] === body.event_id)!;
}

describe('A rotation of the secret', () => {
  it('answers the webhook with its new secret, once', async () => {
    const { account, id, first, rotate } = await setUp();
    const { status, body } = await rotate();
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, status: 'enabled', secret: expect.stringMatching(/^whsec_/) });
    expect(body.secret).not.toBe(first);
    const hours = (Date.parse(body.previous_secret_until) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThan(24.1);
    const { body: list } = await account.rest('GET', '/v1/webhooks');
    expect(JSON.stringify(list)).not.toContain('whsec_');
    const entries = (await account.rest('GET', '/v1/account/audit-log')).body.data;
    expect(entries.map(({ action }: { action: string }) => action)).toContain('webhook.secret_rotated');
  });

  it('lets both secrets sign each message, the new one first', async () => {
    const { account, id, first, rotate } = await setUp();
    const { secret } = (await rotate()).body;
    const tested = await messageOf(account, id);
    await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    const delivered = await eventually(async () =>
      receiver.received.find(({ body }) => body.type === 'ssh_key.created'),
    );
    for (const message of [tested, delivered]) {
      expect([signs(first, message), signs(secret, message)]).toEqual([true, true]);
      const [own] = message.headers['webhook-signature']!.split(' ');
      const { 'webhook-id': name, 'webhook-timestamp': time } = message.headers;
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
      expect(own).toBe(`v1,${createHmac('sha256', key).update(`${name}.${time}.${message.raw}`).digest('base64')}`);
    }
  });

  it('ends the old secret after 24 hours, and erases it', async () => {
    const { account, id, first, rotate } = await setUp();
    const { secret } = (await rotate()).body;
    await db.query(`update webhook set previous_secret_until = now() where id = $1`, [id]);
    const message = await messageOf(account, id);
    expect([signs(first, message), signs(secret, message)]).toEqual([false, true]);
    await eventually(async () => {
      await db.query(`update task set run_at = now() where subject = 'cron:webhook-sweep' and leased_by is null`);
      const [row] = await db.query<{ previousSecret: Buffer | null }>(
        'select previous_secret from webhook where id = $1',
        [id],
      );
      return row!.previousSecret === null;
    });
  });

  it('ends a secret at once if it comes twice', async () => {
    const { account, id, first, rotate } = await setUp();
    const secrets = [(await rotate()).body.secret, (await rotate()).body.secret];
    const message = await messageOf(account, id);
    expect([first, ...secrets].map((secret) => signs(secret, message))).toEqual([false, true, true]);
  });

  it('needs the scope full', async () => {
    const { account, id } = await setUp();
    const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read servers billing' });
    const answer = await freehold.anonymous('POST', `/v1/webhooks/${id}/rotate-secret`, undefined, {
      authorization: `Bearer ${body.plaintext}`,
    });
    expect([answer.status, answer.body.code]).toEqual([403, 'insufficient_scope']);
  });
});

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';
