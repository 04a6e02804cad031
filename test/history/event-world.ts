/** A service with an account whose webhook receives all events, a second account, and actions on both. */
import { beforeAll, expect } from 'vitest';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';

export const { newAccount, db, operator, anonymous, dataDir } = await startFreehold({
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  SIMULATED_PAYMENT_SECONDS: '1',
});
export const receiver = await startReceiver();
atEnd(() => receiver.close());

export let owner: TestAccount;
export let secret: string;
export let server: string;
export const other = await startReceiver();
atEnd(() => other.close());
beforeAll(async () => {
  owner = await newAccount();
  secret = (await owner.rest('POST', '/v1/webhooks', { url: receiver.url })).body.secret;
  await owner.fund(300);
  server = await running();
  const bystander = await newAccount();
  await bystander.rest('POST', '/v1/webhooks', { url: other.url });
});

export const order = async (more: object = {}): Promise<string> =>
  (await owner.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'ams', ...more })).body.order_number;
export const path = (orderNumber: string) => `/v1/servers/${orderNumber}`;
export const becomes = (orderNumber: string, status: string) =>
  eventually(async () => (await owner.rest('GET', path(orderNumber))).body.status === status);
export async function running(): Promise<string> {
  const orderNumber = await order();
  await becomes(orderNumber, 'running');
  return orderNumber;
}
export const patch = (orderNumber: string, body: object) => owner.rest('PATCH', path(orderNumber), body);
export const tick = (process: string) =>
  db.query(`update task set run_at = now() where subject = $1 and leased_by is null`, [`cron:${process}`]);
export async function stopped(): Promise<string> {
  const orderNumber = await running();
  await patch(orderNumber, { power_state: 'off' });
  await becomes(orderNumber, 'stopped');
  return orderNumber;
}
/** Ends the paid time of a server now. */
export async function due(orderNumber: string) {
  await db.query(`update server set paid_until = now() - interval '1 second' where order_number = $1`, [orderNumber]);
  await tick('renewals');
}
/** Lets the machine of a server have sent so many TB in this month. */
export async function sent(orderNumber: string, tb: number): Promise<string> {
  await db.query(
    `insert into meter (order_number, epoch, read_at, month, used_bytes)
      values ($1, '', now(), to_char(now() at time zone 'UTC', 'YYYY-MM'), $2)
      on conflict (order_number) do update set used_bytes = excluded.used_bytes`,
    [orderNumber, tb * 1e12],
  );
  await tick('meter-vps');
  return orderNumber;
}
/** A server whose tier sells traffic above that, and which has begun a TB. */
export async function sentAbove(): Promise<string> {
  await db.query(`update catalog_item set details = details || '{"extraTbMicros": 1000000}' where code = 'vps-1'`);
  return sent(await running(), 2.5);
}
export const topUp = async () =>
  (await owner.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' })).body.order_number;
export const newKey = async (more: object = {}) =>
  (await owner.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read', ...more })).body.key_id;
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ ada@laptop';
export const newSshKey = async () => (await owner.rest('POST', '/v1/ssh-keys', { public_key: KEY })).body.id;
export const newWebhook = async (url = receiver.url) =>
  (await owner.rest('POST', '/v1/webhooks', { url, event_filter: 'ssh_key.deleted' })).body.id;
/** A disabled webhook that a test has enabled again. */
export const enabledWebhook = async () => {
  const id = await newWebhook();
  await db.query(`update webhook set status = 'DISABLED', disabled_reason = 'endpoint_gone' where id = $1`, [id]);
  expect((await owner.rest('POST', `/v1/webhooks/${id}/test`)).body.delivered).toBe(true);
  return id;
};
export const login = async () =>
  (await anonymous('POST', '/v1/auth/login', { email: owner.email, password: owner.password })).body.tokens;
export const messageSent = async (): Promise<string> => {
  const input = `{accountId: "${owner.id}", subject: "Power", body: "We look."}`;
  return (await operator(`mutation { sendMessage(input: ${input}) { id } }`)).data.sendMessage.id;
};
