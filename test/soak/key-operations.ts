/** Operations on SSH keys, API keys, webhooks, and entries in the directory of agents. */
import { setTimeout as sleep } from 'node:timers/promises';
import { must, newSshKeyLine } from './account.ts';
import type { Actor, Operation, Weighed } from './actor.ts';
import { Mailbox } from './mailbox.ts';
import { McpClient } from './mcp-client.ts';
import { RestClient } from './rest-client.ts';

const KEYS_MOST = 6;
/** The price of two servers of the smallest tier. */
const TWO_ORDERS_USD = 12;

const addSshKey: Operation = async (actor) => {
  if (actor.account.sshKeys.size >= KEYS_MOST) return removeSshKey(actor);
  const { code, body } = await actor.api.ask('addSshKey', { name: 'soak', public_key: newSshKeyLine() });
  if (code === 'ok') actor.account.sshKeys.add(body.id);
};
const removeSshKey: Operation = async ({ api, chance, account }) => {
  const id = chance.pick(account.sshKeys);
  if (!id) return;
  account.sshKeys.delete(id);
  await api.ask('getSshKey', { id }, { refusals: ['not_found'] });
  await api.ask('deleteSshKey', { id }, { refusals: ['not_found'] });
};

/** Runs work with a client whose API key has every kind of limit. */
async function withKey(actor: Actor, limits: object, work: (client: RestClient) => Promise<unknown>): Promise<void> {
  const { api, urls, chance, measurements, always } = actor;
  const made = await must(api, 'createApiKey', {
    name: 'soak',
    scope: 'servers billing',
    ip_allowlist: ['127.0.0.0/8'],
    spend_limit_usd: TWO_ORDERS_USD,
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    ...limits,
  });
  const client = new RestClient({
    who: actor.name,
    urls,
    chance,
    measurements,
    credential: made.plaintext,
    always: [...always, 'expired_credential'],
  });
  await work(client);
  await api.ask('revokeApiKey', { key_id: made.key_id });
}

/** Sends three orders at once, of which the key may pay two. A requirement checks the sum at the end. */
const spend: Operation = (actor) =>
  withKey(actor, {}, async (client) => {
    const refusals = ['spend_limit_exceeded', 'insufficient_balance'];
    const asks = [1, 2, 3].map(() => client.ask('orderServer', { service_code: 'vps-1' }, { refusals }));
    for (const { code, body } of await Promise.all(asks))
      if (code === 'ok') await client.ask('deleteServer', { order_number: body.order_number });
  });

const outlive: Operation = (actor) =>
  withKey(actor, { expires_at: new Date(Date.now() + 1_000).toISOString() }, async (client) => {
    for (let reads = 0; reads < 4; reads++) {
      await client.ask('getBalance');
      await sleep(400);
    }
  });

/** An agent revokes the API key that it calls with, and must still get the answer. */
const leave: Operation = async ({ name, api, chance, measurements, always, urls }) => {
  const made = await must(api, 'createApiKey', { name: 'soak', scope: 'full' });
  const agent = await McpClient.connect({
    who: name,
    measurements,
    always,
    url: chance.pick(urls)!,
    credential: made.plaintext,
    generation: chance.oneIn(2) ? 'old' : 'new',
  });
  await agent.ask('revokeApiKey', { key_id: made.key_id });
  await agent.close();
};

const hook: Operation = async ({ api, chance, account }) => {
  const mailbox = await Mailbox.open(chance);
  account.mailboxes.push(mailbox);
  const { id, secret } = await must(api, 'createWebhook', { url: mailbox.url, event_filter: 'ssh_key.*,webhook.*' });
  mailbox.open(secret);
  account.sshKeys.add((await must(api, 'addSshKey', { public_key: newSshKeyLine() })).id);
  await api.ask('testWebhook', { id });
  await api.ask('deleteWebhook', { id });
};

const publish: Operation = async ({ api, chance, account }) => {
  await api.ask('publishAgent', {
    slug: `agent-${account.id.slice(-10)}-${chance.between(1, 3)}`,
    name: `Agent ${chance.between(1, 99)}`,
    description: 'Orders servers at night.',
    url: 'https://agent.invalid',
    listed: !chance.oneIn(4),
    endpoints: [{ protocol: 'mcp', url: 'https://agent.invalid/mcp' }],
  });
};

export const SSH_KEY_OPERATIONS: Weighed<Operation> = [
  [2, addSshKey],
  [1, removeSshKey],
];
export const KEY_OPERATIONS: Weighed<Operation> = [
  [3, spend],
  [1, outlive],
  [1, leave],
  [2, hook],
  [2, publish],
];
