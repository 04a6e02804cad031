/** The causes of each kind of event in the contract's table. Simulated machines cause those of machines. */
import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Secret, TOTP } from 'otpauth';
import { expect } from 'vitest';
import type { EventType } from '../../entities/history/event.ts';
import { atEnd } from '../setup/end.ts';
import { startReceiver } from '../setup/receiver.ts';
import { CASE_CAUSES } from './case-event-causes.ts';
import {
  anonymous,
  becomes,
  dataDir,
  db,
  due,
  enabledWebhook,
  login,
  messageSent,
  newKey,
  newSshKey,
  newWebhook,
  operator,
  order,
  owner,
  patch,
  path,
  running,
  sent,
  sentAbove,
  server,
  stopped,
  tick,
  topUp,
} from './event-world.ts';

let totpSecret: string;
const totpCode = async () => {
  await db.query('update totp set last_step = 0 where account_id = $1', [owner.id]);
  return new TOTP({ secret: Secret.fromBase32(totpSecret) }).generate();
};
const AGENT = {
  ...{ slug: 'night-owl', name: 'Night owl', description: 'Orders at night.', url: 'https://agent.example.org' },
  endpoints: [{ protocol: 'mcp', url: 'https://agent.example.org/mcp' }],
  public_key: Buffer.alloc(32, 7).toString('base64'),
};
const CODES = ['CEASE', 'DURESS', 'GAG', 'RAID', 'SEIZE', 'SUBP', 'TRAP', 'WAR', 'XCRED', 'XOPERS'];
const SUSPEND = 'mutation ($id: ID!) { suspendAccount(id: $id, reason: "Spam was sent.") { suspendedAt } }';
const RESUME = 'mutation ($id: ID!) { resumeAccount(id: $id) { suspendedAt } }';
const INCIDENT = { name: 'Power', status: 'INVESTIGATING', impact: 'MINOR', components: ['api'], body: 'We look.' };

/** Waits for the work, whose result is not the subject of the event. */
const after = (work: Promise<unknown>): Promise<undefined> => work.then(() => undefined);

export type By = 'caller' | 'system' | 'operator';
/** Each event with its actor, its cause and the shown values. A cause returns the subject of the event. */
export const CAUSES: Partial<Record<EventType, [by: By, cause: () => Promise<string | undefined>, shows: object]>> = {
  'message.created': ['operator', messageSent, { from: 'operator', subject: 'Power' }],
  'server.created': ['caller', () => order(), { status: 'pending' }],
  'server.provisioning': ['system', () => order(), { status: 'provisioning' }],
  'server.running': ['system', () => order(), { status: 'running' }],
  'server.stopped': ['system', stopped, { status: 'stopped' }],
  'server.failed': [
    'system',
    async () => {
      // The engine is away, so it cannot create the machine.
      const folder = join(dataDir, 'machines');
      renameSync(folder, `${folder}.away`);
      const failing = await order();
      await becomes(failing, 'failed').finally(() => renameSync(`${folder}.away`, folder));
      return failing;
    },
    { status: 'failed', failure: { code: 'provisioning_failed' } },
  ],
  'server.updated': [
    'caller',
    async () => {
      await patch(server, { labels: { a: 'b' } });
      return server;
    },
    { labels: { a: 'b' } },
  ],
  'server.action_failed': [
    'system',
    async () => {
      const orderNumber = await stopped();
      // The machine was removed by hand, so the engine cannot resize it.
      const folder = join(dataDir, 'machines');
      rmSync(join(folder, readdirSync(folder).find((name) => name.startsWith(orderNumber))!));
      await patch(orderNumber, { service_code: 'vps-2' });
      return orderNumber;
    },
    { status: 'stopped', service_code: 'vps-1', failure: { code: 'resize_failed' } },
  ],
  'server.renewed': [
    'system',
    async () => {
      const orderNumber = await running();
      await due(orderNumber);
      return orderNumber;
    },
    { status: 'running' },
  ],
  'server.suspended': [
    'system',
    async () => {
      const orderNumber = await running();
      await patch(orderNumber, { auto_renew: false });
      await due(orderNumber);
      return orderNumber;
    },
    { status: 'suspended' },
  ],
  'server.traffic_warned': ['system', async () => sent(await running(), 1.8), { status: 'running' }],
  'server.traffic_charged': ['system', sentAbove, { status: 'running' }],
  'server.deleted': [
    'system',
    async () => {
      const orderNumber = await running();
      await owner.rest('DELETE', path(orderNumber));
      return orderNumber;
    },
    { status: 'deleted' },
  ],
  'topup.created': ['caller', topUp, { status: 'pending' }],
  'topup.confirming': ['system', topUp, { status: 'confirming' }],
  'topup.confirmed': ['system', topUp, { status: 'confirmed' }],
  'topup.expired': [
    'system',
    async () => {
      const orderNumber = await topUp();
      await db.query(`update top_up set expires_at = now() - interval '1 second' where order_number = $1`, [
        orderNumber,
      ]);
      return orderNumber;
    },
    { status: 'expired' },
  ],
  'topup.cancelled': [
    'caller',
    async () => {
      const orderNumber = await topUp();
      await owner.rest('POST', `/v1/billing/topups/${orderNumber}/cancel`);
      return orderNumber;
    },
    { status: 'cancelled' },
  ],
  'balance.low': [
    'system',
    async () => {
      await db.query(
        `update server set price_month_micros = 9000000000, paid_until = now() + interval '1 day' where order_number = $1`,
        [server],
      );
      await db.query('update account set low_balance_alerted_at = null where id = $1', [owner.id]);
      await tick('low-balance');
      return owner.id;
    },
    {},
  ],
  'api_key.created': ['caller', newKey, { status: 'active', name: 'k' }],
  'api_key.revoked': [
    'caller',
    async () => {
      const id = await newKey();
      await owner.rest('DELETE', `/v1/auth/api-keys/${id}`);
      return id;
    },
    { status: 'revoked' },
  ],
  'api_key.expired': [
    'system',
    () => newKey({ expires_at: new Date(Date.now() + 1000).toISOString() }),
    { status: 'expired' },
  ],
  'ssh_key.created': ['caller', newSshKey, { name: 'ada@laptop' }],
  'ssh_key.deleted': [
    'caller',
    async () => {
      const id = await newSshKey();
      await owner.rest('DELETE', `/v1/ssh-keys/${id}`);
      return id;
    },
    { deleted: true },
  ],
  'webhook.created': ['caller', newWebhook, { status: 'enabled' }],
  'webhook.deleted': [
    'caller',
    async () => {
      const id = await newWebhook();
      await owner.rest('DELETE', `/v1/webhooks/${id}`);
      return id;
    },
    { deleted: true },
  ],
  'webhook.secret_rotated': [
    'caller',
    async () => {
      const id = await newWebhook();
      await owner.rest('POST', `/v1/webhooks/${id}/rotate-secret`);
      return id;
    },
    { status: 'enabled' },
  ],
  'webhook.disabled': [
    'system',
    async () => {
      const gone = await startReceiver();
      gone.answer = (response) => void response.writeHead(410).end();
      atEnd(() => gone.close());
      const id = await newWebhook(gone.url);
      await owner.rest('DELETE', `/v1/ssh-keys/${await newSshKey()}`);
      return id;
    },
    { status: 'disabled', disabled_reason: 'endpoint_gone' },
  ],
  'webhook.enabled': ['caller', enabledWebhook, { status: 'enabled', disabled_reason: null }],
  'webhook.test': [
    'caller',
    async () => {
      const [{ id }] = (await owner.rest('GET', '/v1/webhooks')).body.data.slice(-1);
      expect((await owner.rest('POST', `/v1/webhooks/${id}/test`)).body.delivered).toBe(true);
      return undefined;
    },
    {},
  ],
  'session.created': ['caller', async () => (await login()).token_id, {}],
  'session.revoked': [
    'caller',
    async () => {
      const { token_id, access_token } = await login();
      await anonymous('POST', '/v1/oauth/revoke', {}, { authorization: `Bearer ${access_token}` });
      return token_id;
    },
    {},
  ],
  'session.reuse_detected': [
    'caller',
    async () => {
      const { refresh_token } = await login();
      for (let i = 0; i < 2; i++) await anonymous('POST', '/v1/auth/token/refresh', { refresh_token });
      return undefined;
    },
    {},
  ],
  'account.password_changed': [
    'caller',
    async () => {
      const given = { current_password: owner.password, new_password: 'two herons on the roof' };
      expect((await owner.rest('POST', '/v1/auth/password', given)).status).toBe(200);
      owner.password = given.new_password;
      return undefined;
    },
    {},
  ],
  'account.totp_enabled': [
    'caller',
    async () => {
      const { body } = await owner.rest('POST', '/v1/auth/totp/setup', { password: owner.password });
      totpSecret = body.secret;
      await owner.rest('POST', '/v1/auth/totp/enable', { totp_code: await totpCode() });
      return undefined;
    },
    {},
  ],
  'account.recovery_codes_renewed': [
    'caller',
    async () => after(owner.rest('POST', '/v1/auth/totp/recovery-codes', { totp_code: await totpCode() })),
    {},
  ],
  'account.totp_disabled': [
    'caller',
    async () => after(owner.rest('POST', '/v1/auth/totp/disable', { totp_code: await totpCode() })),
    {},
  ],
  'account.suspended': ['operator', () => operator(SUSPEND, { id: owner.id }).then(() => owner.id), {}],
  'account.resumed': ['operator', () => operator(RESUME, { id: owner.id }).then(() => owner.id), {}],
  ...CASE_CAUSES,
  'status.changed': [
    'operator',
    async () => {
      const PUBLISH = 'mutation ($input: PublishIncidentInput!) { publishIncident(input: $input) { id } }';
      return (await operator(PUBLISH, { input: INCIDENT })).data.publishIncident.id;
    },
    { name: 'Power', status: 'investigating', updates: [{ body: 'We look.' }] },
  ],
  'canary.updated': [
    'operator',
    async () => {
      const PUBLISH = 'mutation ($input: PublishCanaryInput!) { publishCanary(input: $input) { version } }';
      await operator(PUBLISH, { input: { statement: 'All is well.', codes: CODES } });
      return undefined;
    },
    { status: 'valid', statement: 'All is well.', codes: CODES },
  ],
  'agent.updated': [
    'caller',
    async () => (await owner.rest('POST', '/v1/agents/directory', AGENT)).body.id,
    { slug: 'night-owl', status: 'listed', public_key: AGENT.public_key },
  ],
};
