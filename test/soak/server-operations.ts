/** Operations on servers. Several clients share the servers, so each operation lists its legitimate refusals. */
import type { Actor, Operation, Weighed } from './actor.ts';
import { McpClient } from './mcp-client.ts';
import type { Arguments, Reply } from './measurements.ts';

/** A client deletes a server instead of ordering one above this number. */
const SERVERS_MOST = 10;
const REGIONS = ['ams', 'zrh', 'kef', 'buh'];
const SYSTEMS = ['debian-13', 'debian-12', 'ubuntu-24.04', 'alpine-3.22'];
/** Another client, or the service itself, may have deleted the server. */
const GONE = ['not_found'];
const UNPAYABLE = ['insufficient_balance', 'spend_limit_exceeded'];

/** A stopped server refuses a reboot with this code. */
const NOT_POSSIBLE = 'validation_failed';

const newOrder = ({ chance, account }: Actor): Arguments => ({
  service_code: chance.oneIn(4) ? 'vps-2' : 'vps-1',
  region: chance.pick(REGIONS),
  os: chance.pick(SYSTEMS),
  labels: { client: `c${chance.between(1, 3)}`, role: 'soak' },
  // A key with a spending limit may not ask for renewals, and the others get them without asking.
  ...(chance.oneIn(5) && { auto_renew: false }),
  ...(chance.oneIn(3) && account.sshKeys.size && { ssh_key_ids: [chance.pick(account.sshKeys)] }),
});

const order: Operation = async (actor) => {
  const { api, chance, account } = actor;
  if (account.servers.size >= SERVERS_MOST) return destroy(actor);
  const args = newOrder(actor);
  const asking = { refusals: [...UNPAYABLE, 'unknown_ssh_key'], key: chance.oneIn(2) ? actor.newKey() : undefined };
  // A client that lost an answer sends the request again, perhaps while the first one still runs.
  const asks = Array.from({ length: asking.key && chance.oneIn(2) ? 2 : 1 }, () =>
    api.ask('orderServer', args, asking),
  );
  const ordered = (await Promise.all(asks)).filter(({ code }) => code === 'ok');
  const numbers = new Set(ordered.map(({ body }) => body.order_number as string));
  if (numbers.size > 1) actor.measurements.contradiction(`One idempotency key made the servers ${[...numbers]}.`);
  for (const number of numbers) account.servers.add(number);
  if (numbers.size && chance.oneIn(2)) await wait(actor, [...numbers][0]!, 'running');
};

const dryRun: Operation = async (actor) => {
  await actor.api.ask('orderServer', { ...newOrder(actor), ssh_key_ids: undefined, dry_run: true });
};

/** Picks a server by chance and works on it. Forgets the server if it is gone. */
async function withServer(actor: Actor, work: (number: string) => Promise<Reply>): Promise<Reply | undefined> {
  const number = actor.chance.pick(actor.account.servers);
  if (!number) return undefined;
  const reply = await work(number);
  if (reply.code === 'not_found') actor.account.servers.delete(number);
  return reply;
}

const wait = (actor: Actor, order_number: string, wait_for: string): Promise<Reply> =>
  actor.api.ask('waitForServer', { order_number, wait_for, timeout: 5 }, { refusals: GONE });

const change =
  (of: (actor: Actor) => Arguments, ...refusals: string[]): Operation =>
  async (actor) => {
    await withServer(actor, (order_number) =>
      actor.api.ask(
        'updateServer',
        { order_number, ...of(actor) },
        { refusals: [...GONE, 'server_busy', 'server_suspended', ...refusals] },
      ),
    );
  };

/** Turns a server off, makes it larger, and turns it on again. */
const resize: Operation = async (actor) => {
  await withServer(actor, async (order_number) => {
    const refusals = [...GONE, 'server_busy', 'server_suspended'];
    const off = await actor.api.ask('updateServer', { order_number, power_state: 'off' }, { refusals });
    if (off.code !== 'ok') return off;
    await wait(actor, order_number, 'stopped');
    const larger = await actor.api.ask(
      'updateServer',
      { order_number, service_code: actor.chance.oneIn(2) ? 'vps-2' : 'vps-3' },
      { refusals: [...refusals, ...UNPAYABLE, 'server_not_stopped', 'resize_not_possible'] },
    );
    if (larger.code === 'ok') await wait(actor, order_number, 'stopped');
    return actor.api.ask('updateServer', { order_number, power_state: 'on' }, { refusals });
  });
};

const nameAddress: Operation = async (actor) => {
  await withServer(actor, async (order_number) => {
    const found = await actor.api.ask('getServer', { order_number }, { refusals: GONE });
    const ip = found.body.ipv4;
    if (found.code !== 'ok' || !ip) return found;
    const reverse_dns = [{ ip, ptr: `host-${actor.chance.between(1, 99)}.example.org` }];
    return actor.api.ask('updateServer', { order_number, reverse_dns }, { refusals: GONE });
  });
};

const destroy: Operation = async (actor) => {
  await withServer(actor, async (order_number) => {
    const key = actor.chance.oneIn(3) ? actor.newKey() : undefined;
    const refusals = [...GONE, 'delete_protected'];
    const deleted = await actor.api.ask('deleteServer', { order_number }, { refusals, ...(key && { key }) });
    if (deleted.code === 'delete_protected')
      await actor.api.ask('updateServer', { order_number, delete_protection: false }, { refusals: GONE });
    if (deleted.code === 'ok') actor.account.servers.delete(order_number);
    return deleted;
  });
};

/** A client changes its mind: it sends three requests for one server at once. */
const hurry: Operation = async (actor) => {
  await withServer(actor, async (order_number) => {
    const { api, chance } = actor;
    const refusals = [
      ...GONE,
      'server_busy',
      'server_suspended',
      'delete_protected',
      'spend_limit_exceeded',
      NOT_POSSIBLE,
    ];
    const wishes = [{ power_state: 'off' }, { power_state: 'on' }, { action: 'reboot' }, { auto_renew: true }];
    const asks = [1, 2].map(() => api.ask('updateServer', { order_number, ...chance.pick(wishes) }, { refusals }));
    const [deleted] = await Promise.all([api.ask('deleteServer', { order_number }, { refusals }), ...asks]);
    if (deleted.code === 'ok') actor.account.servers.delete(order_number);
    return deleted;
  });
};

const look: Operation = async (actor) => {
  await withServer(actor, (order_number) => actor.api.ask('getServer', { order_number }, { refusals: GONE }));
};
const list: Operation = async ({ api, chance }) => {
  await api.ask('listServers', chance.oneIn(2) ? {} : { label_selector: `client=c${chance.between(1, 3)}` });
};

/** An MCP client subscribes to a server and waits for it. A REST client reads it. */
const follow: Operation = async (actor) => {
  const { api } = actor;
  if (!(api instanceof McpClient)) return look(actor);
  await withServer(actor, async (order_number) => {
    const found = await api.ask('getServer', { order_number }, { refusals: GONE });
    if (found.code !== 'ok') return found;
    const waiting = () => api.ask('followServer', { order_number, status: 'stopped', timeout: 2 }, { refusals: GONE });
    const watch = () => api.watch(`freehold://servers/${order_number}`, waiting);
    // A suspension of the account ends what opens at that moment, and the answer asks to send it again.
    const again = (error: unknown) =>
      /not available at the moment/.test(String(error)) ? watch() : Promise.reject(error);
    await watch()
      .catch(again)
      .catch((error) => {
        if (!/not.found|nothing here/i.test(String(error))) actor.measurements.contradiction(`A watch ended: ${error}`);
      });
    return found;
  });
};

export const SERVER_OPERATIONS: Weighed<Operation> = [
  [8, order],
  [2, dryRun],
  [3, change(() => ({ power_state: 'off' }))],
  [4, change(() => ({ power_state: 'on' }))],
  [3, change(({ chance }) => ({ action: chance.oneIn(2) ? 'reboot' : 'reset' }), NOT_POSSIBLE)],
  [2, change(({ chance }) => ({ action: 'rebuild', os: chance.pick(SYSTEMS) }))],
  [2, resize],
  [2, change(({ chance }) => ({ labels: { client: `c${chance.between(1, 3)}` } }))],
  [1, change(({ chance }) => ({ hostname: `web-${chance.between(1, 99)}.example.org` }))],
  [4, change(({ chance }) => ({ auto_renew: !chance.oneIn(4) }), 'spend_limit_exceeded')],
  [1, change(() => ({ delete_protection: true }))],
  [1, nameAddress],
  [4, destroy],
  [2, hurry],
  [4, look],
  [3, list],
  [2, follow],
];
