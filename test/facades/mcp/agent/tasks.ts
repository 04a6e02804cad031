/** Tasks of customers. Each begins as a typical agent would, with a mistake. */
import { expect } from 'vitest';
import type { ErrorCode } from '../../../../entities/errors.ts';
import { eventually } from '../../../setup/freehold.ts';
import type { RestClient } from '../../../setup/spawn.ts';
import type { Move } from './agent.ts';

// biome-ignore lint/suspicious/noExplicitAny: each task checks its answer
type Answer = any;

export interface Task {
  goal: string;
  /** The balance of the account. Absent: the agent has no account yet. */
  usd?: number;
  /** The facts of the user, by the user's words. */
  facts?: Record<string, string>;
  moves: Move[];
  /** The errors that must stand in the way. */
  meets: ErrorCode[];
  /** Checks the service itself, and the answer of the last move. */
  holds(rest: RestClient, answer: Answer): Promise<void>;
}

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ agent@nowhere';
const ORDER: Move = { seeks: 'order server', sends: { service_code: 'vps-1' } };
const WAIT: Move = { seeks: 'wait server', sends: { status: 'running' } };

const serversOf = async (rest: RestClient): Promise<Answer[]> => (await rest('GET', '/v1/servers')).body.data;
const settled = async (rest: RestClient, expected: object): Promise<void> => {
  await eventually(async () => {
    const [server] = await serversOf(rest);
    return Object.entries(expected).every(([name, value]) => server[name] === value);
  });
};

export const TASKS: Task[] = [
  {
    goal: 'Register, and get a key for servers and billing',
    facts: { email: 'heron@example.org' },
    moves: [
      { seeks: 'create account', sends: { password: 'heron' } },
      { seeks: 'create API key', sends: { name: 'agent', scope: 'servers,billing' } },
    ],
    meets: ['weak_password', 'validation_failed'],
    holds: async (_, answer) => {
      expect(answer.plaintext).toMatch(/^svc_live_/);
      expect(answer.scope).toBe('servers billing');
    },
  },
  {
    goal: 'Order a server with nothing but an email address',
    facts: { email: 'stork@example.org', password: 'a stork on the chimney' },
    moves: [{ seeks: 'order server' }],
    meets: ['missing_credential', 'insufficient_balance'],
    holds: (rest) => settled(rest, { status: 'running' }),
  },
  {
    goal: 'Find the price of the cheapest VPS in Amsterdam',
    usd: 0,
    moves: [
      { seeks: 'list VPS tiers', least: 'price_month_usd' },
      { seeks: 'quote server', sends: { region: 'Amsterdam' } },
    ],
    meets: ['unknown_region'],
    holds: async (_, answer) => expect(answer).toMatchObject({ service_code: 'vps-1', region: 'ams', total_usd: 6 }),
  },
  {
    goal: 'Order a server with too little money, and pay in a coin',
    usd: 5,
    moves: [{ seeks: 'order server', sends: { plan: 'vps-1', image: 'debian-13' } }],
    meets: ['unknown_field', 'insufficient_balance'],
    holds: async (rest, answer) => {
      expect(answer.paid_by).toBe('balance');
      expect((await rest('GET', '/v1/billing/topups')).body.data).toMatchObject([{ amount_usd: 30 }]);
    },
  },
  {
    goal: 'Order a server with an image whose code is a guess',
    usd: 30,
    moves: [{ seeks: 'order server', sends: { service_code: 'vps1', os: 'ubuntu' } }],
    meets: ['unknown_service_code', 'unknown_os'],
    holds: async (_, answer) => expect(answer).toMatchObject({ service_code: 'vps-1', os: 'ubuntu-24.04' }),
  },
  {
    goal: 'Wait until a new server is running',
    usd: 30,
    moves: [ORDER, { seeks: 'wait server', sends: { status: 'active' } }],
    meets: ['validation_failed'],
    holds: async (_, answer) => expect(answer.status).toBe('running'),
  },
  {
    goal: 'Resize a server that is running',
    usd: 100,
    moves: [ORDER, WAIT, { seeks: 'resize server', sends: { size: 'vps-2' } }],
    meets: ['unknown_field', 'server_not_stopped'],
    holds: (rest) => settled(rest, { service_code: 'vps-2', status: 'stopped' }),
  },
  {
    goal: 'Change a server that is still busy',
    usd: 30,
    moves: [ORDER, { seeks: 'rebuild server', sends: { action: 'reboot' } }],
    meets: ['server_busy'],
    holds: (rest) => settled(rest, { status: 'running' }),
  },
  {
    goal: 'Rebuild a server with another image',
    usd: 30,
    moves: [ORDER, WAIT, { seeks: 'rebuild server', sends: { os: 'debian12' } }],
    meets: ['validation_failed', 'unknown_os'],
    holds: (rest) => settled(rest, { os: 'debian-12', status: 'running' }),
  },
  {
    goal: 'Delete a protected server, and get the rest of the month back',
    usd: 30,
    moves: [
      ORDER,
      { seeks: 'change server delete protection', sends: { protection: true } },
      { seeks: 'delete server', sends: { confirm: 'yes' } },
    ],
    meets: ['unknown_field', 'validation_failed', 'delete_protected'],
    holds: async (rest, answer) => {
      expect(answer.refunded_usd).toBeGreaterThan(5);
      await eventually(async () => (await serversOf(rest)).length === 0);
    },
  },
  {
    goal: 'Keep a server for another month',
    usd: 30,
    moves: [
      { ...ORDER, sends: { service_code: 'vps-1', renew: false } },
      { seeks: 'change server renewal', sends: { renew: true } },
    ],
    meets: ['unknown_field'],
    holds: (rest) => settled(rest, { auto_renew: true }),
  },
  {
    goal: 'Name a server, label it, and find it by its label',
    usd: 30,
    moves: [
      ORDER,
      WAIT,
      { seeks: 'change server hostname', sends: { name: 'Web 1', tags: { Env: 'prod' } } },
      { seeks: 'list servers label', sends: { label: 'env=prod' } },
    ],
    meets: ['unknown_field', 'validation_failed'],
    holds: async (_, answer) => expect(answer.data).toMatchObject([{ hostname: 'web-1', labels: { env: 'prod' } }]),
  },
  {
    goal: 'Set the reverse DNS of a server',
    usd: 30,
    moves: [ORDER, WAIT, { seeks: 'change server reverse DNS', sends: { rdns: 'web.example.com' } }],
    meets: ['unknown_field', 'validation_failed'],
    holds: async (rest) => {
      const [{ ipv4, reverse_dns }] = await serversOf(rest);
      expect(reverse_dns).toEqual([{ ip: ipv4, ptr: 'web.example.com' }]);
    },
  },
  {
    goal: 'Correct the address of a name',
    usd: 30,
    moves: [
      ORDER,
      WAIT,
      { seeks: 'change server reverse DNS', sends: { reverse_dns: [{ ip: '203.0.113.99', ptr: 'a.example' }] } },
    ],
    meets: ['validation_failed'],
    holds: async (_, answer) => expect(answer.reverse_dns).toEqual([{ ip: answer.ipv4, ptr: 'a.example' }]),
  },
  {
    goal: 'Add the SSH key of the user',
    usd: 0,
    facts: { '.pub file': KEY },
    moves: [{ seeks: 'add SSH key', sends: { key: '~/.ssh/id_ed25519.pub' } }],
    meets: ['unknown_field', 'invalid_public_key'],
    holds: async (_, answer) => expect(answer.fingerprint).toMatch(/^SHA256:/),
  },
  {
    goal: 'List what an account used in a month',
    usd: 30,
    moves: [ORDER, { seeks: 'list usage month', sends: { start_date: '11/01/2026', end_date: '11/30/2026' } }],
    meets: ['unknown_field', 'validation_failed'],
    holds: async (_, answer) => expect(answer.from).toBe('2026-11-01T00:00:00.000Z'),
  },
  {
    goal: 'Hear of new servers at a URL',
    usd: 0,
    moves: [{ seeks: 'create webhook', sends: { url: 'http://example.com/hook', events: 'server.create' } }],
    meets: ['unknown_event', 'invalid_url'],
    holds: async (_, answer) =>
      expect(answer).toMatchObject({ url: 'https://example.com/hook', event_filter: 'server.created' }),
  },
  {
    goal: 'Make a key with limits',
    usd: 0,
    moves: [
      {
        seeks: 'create API key',
        sends: { name: 'k', permissions: ['read', 'servers'], expires: '2099-01-01', budget: '25' },
      },
    ],
    meets: ['validation_failed'],
    holds: async (_, answer) =>
      expect(answer).toMatchObject({
        scope: 'read servers',
        expires_at: '2099-01-01T00:00:00.000Z',
        spend_limit_usd: 25,
      }),
  },
  {
    goal: 'Order two servers, of which the second has the idempotency key of the first',
    usd: 60,
    moves: ['vps-1', 'vps-1', 'vps-2'].map((service_code) => ({
      seeks: 'order server',
      sends: { service_code, idempotency_key: 'my order' },
    })),
    meets: ['validation_failed', 'idempotency_key_reused'],
    holds: async (rest) => {
      const servers = await serversOf(rest);
      expect(servers.map(({ service_code }) => service_code).sort()).toEqual(['vps-1', 'vps-2']);
    },
  },
  {
    goal: 'Find a payment that was confirmed',
    usd: 0,
    moves: [
      { seeks: 'open top-up', sends: { amount: '10', currency: 'monero' } },
      { seeks: 'list top-ups', sends: { status: 'paid' } },
    ],
    meets: ['amount_too_low', 'unknown_coin', 'validation_failed'],
    holds: async (_, answer) => expect(answer.data).toMatchObject([{ status: 'confirmed', crypto: 'XMR' }]),
  },
];
