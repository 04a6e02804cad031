/** The service keeps few bytes of an event, however many webhooks hear of it, and few deliveries of a webhook. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { cronSubject } from '../../provisioning/tasks/schedule.ts';
import { WEBHOOK_RETENTION_PROCESS } from '../../provisioning/webhooks/retention.ts';
import { WEBHOOK_SWEEP_PROCESS } from '../../provisioning/webhooks/sweep.ts';
import { asOwner, newDatabase } from '../setup/database.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { KEY, receiver, register } from './receivers.ts';

const { newAccount, db, operator } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

const addKey = async ({ rest }: TestAccount) =>
  (await rest('POST', '/v1/ssh-keys', { name: 'laptop', public_key: KEY })).body;
const snapshots = async () =>
  (await db.query<{ event: string }>('select event_id as event from webhook_snapshot')).length;
const count = async (condition: string, webhook: string) =>
  (await db.query(`select from webhook_delivery where webhook_id = $1 and ${condition}`, [webhook])).length;
/** Lets a periodic process run now, and waits for its end. */
async function tick(process: string): Promise<void> {
  const fence = async () =>
    (
      await db.query<{ fence: bigint }>('select fence from task where subject = $1 and leased_by is null', [
        cronSubject(process),
      ])
    )[0]?.fence;
  const before = await eventually(fence);
  await db.query('update task set run_at = now() where subject = $1', [cronSubject(process)]);
  await eventually(async () => ((await fence()) ?? 0n) > before);
}
/** Inserts deliveries as many events would. */
const insertMany = (webhookId: string, accountId: string, many: number, state: string) =>
  db.query(
    `insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, status, next_attempt_at)
      select 'dlv_0' || left(md5($1), 9) || lpad(n::text, 16, '0'), $2, $1, 'evt_0' || lpad(n::text, 25, '0'), 'server.updated', ${state}
      from generate_series(1, ${many}) as n`,
    [webhookId, accountId],
  );
const nth = (n: number) => String(n).padStart(16, '0');
/** Makes a webhook without events, whose receiver answers 503 and asks for an hour. */
async function quietWebhook(account: TestAccount) {
  const to = await receiver();
  to.answer = (response) => void response.writeHead(503, { 'retry-after': '3600' }).end();
  return { to, id: (await register(account, to.url, { event_filter: 'topup.*' })).id as string };
}

describe('An event', () => {
  it('is kept once for ten webhooks, and all of them and a repetition tell the resource as it was', async () => {
    const account = await newAccount();
    const receivers = await Promise.all(Array.from({ length: 10 }, receiver));
    for (const { url } of receivers) await register(account, url, { event_filter: 'ssh_key.created' });
    const before = await snapshots();
    const key = await addKey(account);
    for (const to of receivers) {
      await eventually(async () => to.received.length === 1);
      expect(to.received[0]!.body.data.object).toEqual(key);
    }
    expect((await snapshots()) - before).toBe(1);
    await account.rest('DELETE', `/v1/ssh-keys/${key.id}`);
    const [delivery] = await eventually(async () => {
      const ended = await db.query<{ id: string }>(
        `select id from webhook_delivery where account_id = $1 and status = 'SUCCEEDED' order by id`,
        [account.id],
      );
      return ended.length === 10 && ended;
    });
    const { errors } = await operator(`mutation { redeliver(id: "${delivery!.id}") { id } }`);
    expect(errors).toBeUndefined();
    await eventually(async () => receivers.some(({ received }) => received.length === 2));
    const again = receivers.find(({ received }) => received.length === 2)!;
    expect(again.received[1]!.raw).toBe(again.received[0]!.raw);
  });

  it('is forgotten with its last webhook', async () => {
    const account = await newAccount();
    const to = await receiver();
    const hooks = [await register(account, to.url), await register(account, to.url)];
    const eventId = await db.transaction((tx) =>
      record(tx, account.id, 'SRV-0123456789', { type: 'server.updated', actor: SYSTEM }),
    );
    for (const left of [1, 0]) {
      await account.rest('DELETE', `/v1/webhooks/${hooks[left]!.id}`);
      expect(await db.query('select from webhook_snapshot where event_id = $1', [eventId])).toHaveLength(left);
    }
  });

  it('is forgotten with its last delivery', async () => {
    const account = await newAccount();
    const to = await receiver();
    const hooks = [await register(account, to.url), await register(account, to.url)];
    const kept = async () => (await db.query('select from webhook_snapshot where event_id = $1', [eventId])).length;
    const eventId = await db.transaction((tx) =>
      record(tx, account.id, 'SRV-0123456789', { type: 'server.updated', actor: SYSTEM }),
    );
    await tick(WEBHOOK_RETENTION_PROCESS);
    expect(await kept()).toBe(1);
    await account.rest('DELETE', `/v1/webhooks/${hooks[0]!.id}`);
    expect(await kept()).toBe(1);
    await eventually(async () => (await count(`status = 'SUCCEEDED' and event_id = '${eventId}'`, hooks[1]!.id)) === 1);
    await db.query(`update webhook_delivery set created_at = now() - interval '31 days' where event_id = $1`, [
      eventId,
    ]);
    await tick(WEBHOOK_RETENTION_PROCESS);
    expect(await count(`event_id = '${eventId}'`, hooks[1]!.id)).toBe(0);
    expect(await kept()).toBe(0);
  });
});

it('A webhook keeps few deliveries, also if they end long after their events', async () => {
  const account = await newAccount();
  const { id } = await quietWebhook(account);
  await insertMany(id, account.id, 1_100, `'RETRYING', now() + interval '1 hour'`);
  await db.query(`update webhook_delivery set created_at = now() - interval '25 minutes' where webhook_id = $1`, [id]);
  await db.query(`update webhook_delivery set status = 'SUCCEEDED', next_attempt_at = null where webhook_id = $1`, [
    id,
  ]);
  await tick(WEBHOOK_RETENTION_PROCESS);
  expect(await count(`status = 'SUCCEEDED'`, id)).toBe(1_000);
});

describe('The migration', () => {
  it('keeps one snapshot for the deliveries of an event', async () => {
    const old = await newDatabase();
    await asOwner(old, 'drop table webhook_snapshot; alter table webhook_delivery add column snapshot jsonb');
    await old.query(`insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, snapshot)
      values ('dlv_1', 'a', 'w1', 'evt_1', 'server.running', '{"id": 1}'), ('dlv_2', 'a', 'w2', 'evt_1', 'server.running', '{"id": 1}'),
        ('dlv_3', 'a', 'w1', 'evt_2', 'server.running', '{"id": 2}'), ('dlv_4', 'a', 'w1', 'evt_3', 'webhook.test', null)`);
    await asOwner(old, readFileSync('entities/database/migrations/0015-snapshots.sql', 'utf8'));
    await asOwner(old, 'grant select on webhook_snapshot to public');
    expect(await old.query('select * from webhook_snapshot order by event_id')).toEqual([
      { eventId: 'evt_1', snapshot: { id: 1 } },
      { eventId: 'evt_2', snapshot: { id: 2 } },
    ]);
    expect(await old.query('select from webhook_delivery')).toHaveLength(4);
  });
});

describe('A webhook', () => {
  it('keeps its 1,000 newest ended deliveries, and all that wait', async () => {
    const account = await newAccount();
    const { id } = await quietWebhook(account);
    await insertMany(
      id,
      account.id,
      1005,
      `case when n % 500 = 1 then 'RETRYING' else 'SUCCEEDED' end,
      case when n % 500 = 1 then now() + interval '1 hour' end`,
    );
    await tick(WEBHOOK_RETENTION_PROCESS);
    expect(await count("status = 'RETRYING'", id)).toBe(3);
    expect(await count("status = 'SUCCEEDED'", id)).toBe(1000);
    expect(await count(`right(id, 16) < '${nth(4)}' and status = 'SUCCEEDED'`, id)).toBe(0);
  });

  it('fails its oldest waiting deliveries above 1,000, and says so', async () => {
    const account = await newAccount();
    const { id } = await quietWebhook(account);
    const other = await quietWebhook(account);
    const topUp = () => account.rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' });
    await insertMany(id, account.id, 1004, `'RETRYING', now() + interval '1 hour'`);
    await tick(WEBHOOK_SWEEP_PROCESS);
    expect(await count("status = 'FAILED' and error = 'too_many_waiting' and next_attempt_at is null", id)).toBe(4);
    expect(await count(`right(id, 16) <= '${nth(4)}' and status = 'FAILED'`, id)).toBe(4);
    expect(await count("status = 'RETRYING'", id)).toBe(1000);
    await topUp();
    await eventually(async () => other.to.received.length === 1);
    expect(
      (await account.rest('GET', '/v1/webhooks')).body.data.map(({ status }: { status: string }) => status),
    ).toEqual(['enabled', 'enabled']);
  });

  it('leaves the task alone while it rests for less than a minute, as for a place at its host', async () => {
    const account = await newAccount();
    const { id } = await quietWebhook(account);
    await insertMany(id, account.id, 1, `'PENDING', now() + interval '1 hour'`);
    await db.query(`update webhook_delivery set created_at = now() - interval '1 minute' where webhook_id = $1`, [id]);
    /** The seconds until the task runs, after a sweep. */
    const restOf = async (seconds: number) => {
      await db.query('delete from task where subject = $1', [id]);
      await db.query(
        `insert into task (id, lane, process, subject, account_id, step, run_at)
          values ($1, 'webhooks', 'webhook', $1, $2, 'deliver', now() + $3::int * interval '1 second')`,
        [id, account.id, seconds],
      );
      await tick(WEBHOOK_SWEEP_PROCESS);
      const [task] = await db.query<{ runAt: Date }>('select run_at from task where subject = $1', [id]);
      return Math.round((+task!.runAt - Date.now()) / 1000);
    };
    expect(await restOf(50)).toBeGreaterThan(40);
    expect(await restOf(50)).toBeLessThanOrEqual(50);
    // Woken, it is due, or rests until its delivery is.
    expect([0, 1]).toContain(Math.round((await restOf(600)) / 3600));
    expect(Math.abs((await restOf(600)) - 600)).toBeGreaterThan(60);
  });

  it('keeps waiting findings and payments while customers write more messages than may wait', async () => {
    const account = await newAccount();
    const { id } = await quietWebhook(account);
    await insertMany(id, account.id, 1004, `'RETRYING', now() + interval '1 hour'`);
    await db.query(
      `update webhook_delivery set event_type = case when right(id, 16) <= $2 then 'finding.reported' else 'message.received' end
        where webhook_id = $1`,
      [id, nth(6)],
    );
    await tick(WEBHOOK_SWEEP_PROCESS);
    expect(await count("status = 'RETRYING' and event_type = 'finding.reported'", id)).toBe(6);
    expect(await count(`status = 'FAILED' and right(id, 16) between '${nth(7)}' and '${nth(10)}'`, id)).toBe(4);
    expect(await count("status = 'RETRYING'", id)).toBe(1000);
  });
});
