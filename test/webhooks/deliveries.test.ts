/** Retries, disabled webhooks, and commits in any order. The tests move time by SQL. */
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { signalTask } from '../../entities/tasks/start.ts';
import { pauseSeconds, RETRY_SECONDS } from '../../provisioning/webhooks/result.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { type Receiver, startReceiver } from '../setup/receiver.ts';

const { newAccount, db } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

interface Delivery {
  status: string;
  attempts: number;
  responseStatus: number | null;
  error: string | null;
  restSeconds: number | null;
}
interface Setup {
  account: TestAccount;
  to: Receiver;
  id: string;
}

async function setup(event_filter = 'server.*', to?: Receiver): Promise<Setup> {
  const receiver = to ?? (await startReceiver());
  atEnd(() => receiver.close().catch(() => {}));
  const account = await newAccount();
  const { body } = await account.rest('POST', '/v1/webhooks', { url: receiver.url, event_filter });
  return { account, to: receiver, id: body.id };
}
const happen = ({ account }: Setup, subject = 'SRV-0123456789') =>
  db.transaction((tx) => record(tx, account.id, subject, { type: 'server.updated', actor: SYSTEM }));
const deliveries = (id: string) =>
  db.query<Delivery>(
    `select status, attempts, response_status as "responseStatus", error, extract(epoch from next_attempt_at - now())::float8 as "restSeconds"
      from webhook_delivery where webhook_id = $1 order by id`,
    [id],
  );
const attempted = (id: string, attempts: number) =>
  eventually(async () => {
    const [delivery] = await deliveries(id);
    return delivery!.attempts === attempts && delivery!.status !== 'DELIVERING' && delivery;
  });
/** Ends the pause before the next attempt. */
const later = (id: string) =>
  db.transaction(async (tx) => {
    await tx.query(
      'update webhook_delivery set next_attempt_at = now() where webhook_id = $1 and next_attempt_at is not null',
      [id],
    );
    await signalTask(tx, id);
  });
const shown = async ({ account, id }: Setup) =>
  (await account.rest('GET', '/v1/webhooks')).body.data.find((webhook: { id: string }) => webhook.id === id);

describe('A delivery', () => {
  it('waits for an unavailable receiver, and keeps its id and its body', async () => {
    const hook = await setup();
    const { to, id } = hook;
    to.answer = (response) => void response.writeHead(500).end();
    const eventId = await happen(hook);
    const first = await attempted(id, 1);
    expect(first).toMatchObject({ status: 'RETRYING', responseStatus: 500, error: 'http_status' });
    expect(first.restSeconds).toBeLessThanOrEqual(6);
    to.answer = (response) => void response.writeHead(202).end();
    await later(id);
    expect(await attempted(id, 2)).toMatchObject({
      status: 'SUCCEEDED',
      responseStatus: 202,
      error: null,
      restSeconds: null,
    });
    expect(to.received.map(({ headers }) => headers['webhook-id'])).toEqual([eventId, eventId]);
    expect(to.received[0]!.raw).toBe(to.received[1]!.raw);
    await eventually(async () => (await db.query('select from task where subject = $1', [id])).length === 0);
  });

  it('is retried at the times of the schedule, give or take a fifth', () => {
    expect(RETRY_SECONDS).toEqual([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]);
    for (const [index, seconds] of RETRY_SECONDS.entries()) {
      const pauses = Array.from({ length: 500 }, () => pauseSeconds(index + 1)!);
      expect(Math.min(...pauses)).toBeGreaterThanOrEqual(seconds * 0.8);
      expect(Math.max(...pauses)).toBeLessThanOrEqual(seconds * 1.2);
      expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(seconds * 0.3);
    }
    expect(pauseSeconds(10)).toBeUndefined();
  });

  it.each([
    ['3600', 3600],
    ['999999999', 86_400],
    [new Date(Date.now() + 7_200_000).toUTCString(), 7200],
  ])('waits as long as Retry-After: %s asks for, a day at most', async (retryAfter, seconds) => {
    const hook = await setup();
    hook.to.answer = (response) => void response.writeHead(503, { 'retry-after': retryAfter }).end();
    await happen(hook);
    const { restSeconds } = await attempted(hook.id, 1);
    expect(restSeconds).toBeGreaterThan(seconds - 120);
    expect(restSeconds).toBeLessThanOrEqual(seconds + 1);
  });

  it.each(['-5', 'soon', '0'])('ignores Retry-After: %s', async (retryAfter) => {
    const hook = await setup();
    hook.to.answer = (response) => void response.writeHead(503, { 'retry-after': retryAfter }).end();
    await happen(hook);
    expect((await attempted(hook.id, 1)).restSeconds).toBeLessThanOrEqual(6);
  });

  it('is one of at most four at once to an endpoint', async () => {
    const hook = await setup();
    let [open, most] = [0, 0];
    hook.to.answer = (response) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open--;
        response.writeHead(204).end();
      }, 50);
    };
    await Promise.all(Array.from({ length: 20 }, () => happen(hook)));
    await eventually(async () => (await deliveries(hook.id)).every(({ status }) => status === 'SUCCEEDED'));
    expect(most).toBe(4);
    expect(hook.to.received).toHaveLength(20);
  });

  it('is not missed when transactions commit in another order than their events', async () => {
    const hook = await setup();
    let release = () => {};
    const held = new Promise<void>((resume) => (release = resume));
    let written = () => {};
    const early = new Promise<void>((resume) => (written = resume));
    const happening = { type: 'server.updated', actor: SYSTEM } as const;
    const other = await setup('*');
    const slow = db.transaction(async (tx) => {
      const id = await record(tx, hook.account.id, 'SRV-EARLY00000', happening);
      written();
      await held;
      return id;
    });
    await early;
    const quick = await happen(other);
    await eventually(async () => other.to.received.some(({ body }) => body.id === quick));
    release();
    const id = await slow;
    await eventually(async () => hook.to.received.some(({ body }) => body.id === id));
  });

  it('does not exist if the change was rolled back', async () => {
    const hook = await setup();
    const failed = db.transaction(async (tx) => {
      await record(tx, hook.account.id, 'SRV-0123456789', {
        type: 'server.updated',
        actor: SYSTEM,
      });
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await deliveries(hook.id)).toEqual([]);
  });
});

describe('A webhook', () => {
  it('is disabled after the last attempt of an event without any success, and enabled by a successful test', async () => {
    const hook = await setup('server.*,webhook.disabled');
    const { to, id, account } = hook;
    const watcher = await startReceiver();
    atEnd(() => watcher.close());
    await account.rest('POST', '/v1/webhooks', { url: watcher.url, event_filter: 'webhook.disabled' });
    to.answer = (response) => void response.writeHead(500).end();
    await happen(hook);
    for (let attempt = 1; attempt < 10; attempt++) {
      await attempted(id, attempt);
      await later(id);
    }
    expect(await attempted(id, 10)).toMatchObject({ status: 'FAILED', restSeconds: null });
    expect(await shown(hook)).toMatchObject({ status: 'disabled', disabled_reason: 'retries_exhausted' });
    const [told] = await eventually(async () => watcher.received.length > 0 && watcher.received);
    expect(told!.body).toMatchObject({
      type: 'webhook.disabled',
      data: { object: { id, status: 'disabled' }, disabled_reason: 'retries_exhausted' },
    });
    const audited = await db.query(`select from audit_entry where action = 'webhook.disabled' and resource_id = $1`, [
      id,
    ]);
    expect(audited).toHaveLength(1);

    await happen(hook);
    expect(await deliveries(id)).toHaveLength(1);
    expect((await account.rest('POST', `/v1/webhooks/${id}/test`)).body.delivered).toBe(false);
    expect((await shown(hook)).status).toBe('disabled');
    to.answer = (response) => void response.writeHead(204).end();
    expect((await account.rest('POST', `/v1/webhooks/${id}/test`)).body.delivered).toBe(true);
    expect(await shown(hook)).toMatchObject({
      status: 'enabled',
      disabled_reason: null,
      last_delivery: { event_type: 'webhook.test', status: 'succeeded' },
    });
    const eventId = await happen(hook);
    await eventually(async () => to.received.at(-1)!.body.id === eventId);
  });

  it('stays enabled if a delivery succeeded since the first attempt of the exhausted one', async () => {
    const hook = await setup();
    const { to, id } = hook;
    to.answer = (response) => void response.writeHead(500).end();
    const lost = await happen(hook);
    await attempted(id, 1);
    to.answer = (response) => void response.writeHead(to.received.at(-1)!.body.id === lost ? 500 : 204).end();
    await happen(hook);
    await eventually(async () => (await deliveries(id))[1]?.status === 'SUCCEEDED');
    await db.query('update webhook_delivery set attempts = 9 where event_id = $1', [lost]);
    await later(id);
    expect(await attempted(id, 10)).toMatchObject({ status: 'FAILED' });
    expect((await shown(hook)).status).toBe('enabled');
  });

  it('is disabled at once by 410, and gets no further messages', async () => {
    const hook = await setup();
    hook.to.answer = (response) => void response.writeHead(500, { 'retry-after': '3600' }).end();
    await happen(hook);
    await attempted(hook.id, 1);
    hook.to.answer = (response) => void response.writeHead(410).end();
    await happen(hook);
    await eventually(async () => (await shown(hook)).status === 'disabled');
    expect((await shown(hook)).disabled_reason).toBe('endpoint_gone');
    expect((await deliveries(hook.id)).map(({ status }) => status)).toEqual(['FAILED', 'FAILED']);
    await eventually(async () => (await db.query('select from task where subject = $1', [hook.id])).length === 0);
    expect(hook.to.received.length).toBe(2);
  });
});
