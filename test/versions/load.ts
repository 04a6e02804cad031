/** Customers who work while one version replaces another. Each knows what it must have at the end. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, awaited, plainClient } from './client.ts';

/** The addresses of the running versions, as a balancer knows them. */
export interface Balancer {
  urls: string[];
}

/** The counts of all customers. */
export interface Seen {
  /** Answers by the address that gave them. */
  answers: Record<string, number>;
  /** Answers 5xx, and other answers that no customer caused. */
  faults: string[];
  /** Calls without an answer, by their reasons. Each was sent again. */
  moved: Record<string, number>;
}

/** A customer of the load. */
export interface Customer {
  /** Its owner's credential. */
  token: string;
  toppedUpUsd: number;
  chargedUsd: number;
  refundedUsd: number;
  topUps: Set<string>;
  /** The host names of the servers that it has. */
  servers: Map<string, string>;
  deleted: Set<string>;
}

/** Sends a call to one address after the other, until one answers. The key makes it safe to repeat. */
async function send(
  { urls }: Balancer,
  seen: Seen,
  token: string | undefined,
  ...[method, path, body]: [method: string, path: string, body?: object]
): Promise<Answer> {
  const key = method === 'GET' ? undefined : randomUUID();
  for (let first = Math.floor(Math.random() * urls.length); ; first++) {
    const url = urls[first % urls.length]!;
    try {
      const answer = await plainClient(url, token)(method, path, body, key);
      seen.answers[url] = (seen.answers[url] ?? 0) + 1;
      if (answer.status >= 500) seen.faults.push(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer;
    } catch (error) {
      const { cause } = error as Error & { cause?: { code?: string; message?: string } };
      const reason = String(cause?.code ?? cause?.message ?? error);
      seen.moved[reason] = (seen.moved[reason] ?? 0) + 1;
      await sleep(20);
    }
  }
}

/** Registers a customer, with a webhook and money. */
export async function newCustomer(balancer: Balancer, seen: Seen, hook: string, number: number): Promise<Customer> {
  const given = { email: `load-${number}@example.org`, password: `a heron on roof number ${number}` };
  const { body } = await send(balancer, seen, undefined, 'POST', '/v1/auth/register', given);
  const token: string = body.tokens.access_token;
  const customer: Customer = {
    ...{ token, toppedUpUsd: 0, chargedUsd: 0, refundedUsd: 0 },
    ...{ topUps: new Set<string>(), servers: new Map<string, string>(), deleted: new Set<string>() },
  };
  const webhook = await send(balancer, seen, token, 'POST', '/v1/webhooks', { url: hook, event_filter: '*' });
  if (webhook.status !== 200) seen.faults.push(`A webhook: ${JSON.stringify(webhook.body)}`);
  for (let i = 0; i < 4; i++) await topUp(customer, (...call) => send(balancer, seen, token, ...call), seen);
  const isPaid = ({ balance_usd }: { balance_usd: number }) => balance_usd >= customer.toppedUpUsd;
  await awaited(plainClient(balancer.urls[0]!, token), '/v1/account/balance', isPaid);
  return customer;
}

type Call = (method: string, path: string, body?: object) => Promise<Answer>;

async function topUp(customer: Customer, call: Call, seen: Seen): Promise<void> {
  const { status, body } = await call('POST', '/v1/billing/topups', { amount_usd: 40, crypto: 'BTC' });
  if (status !== 200) return refused(seen, 'a top-up', body);
  customer.topUps.add(body.order_number);
  customer.toppedUpUsd += 40;
}

const refused = (seen: Seen, what: string, body: Answer['body'], ...allowed: string[]) => {
  // The client has noted a 5xx.
  if (body.status < 500 && !allowed.includes(body.code))
    seen.faults.push(`${what} was refused: ${JSON.stringify(body)}`);
};

async function order(customer: Customer, call: Call, seen: Seen): Promise<void> {
  const hostname = `h${randomUUID().slice(0, 8)}`;
  const { status, body } = await call('POST', '/v1/servers', { service_code: 'vps-1', hostname });
  if (status !== 200) return refused(seen, 'an order', body, 'insufficient_balance');
  customer.servers.set(body.order_number, hostname);
  customer.chargedUsd += body.charged_usd;
}

async function remove(customer: Customer, call: Call, seen: Seen, number: string): Promise<void> {
  const { status, body } = await call('DELETE', `/v1/servers/${number}`);
  if (status !== 200) return refused(seen, 'a deletion', body);
  customer.servers.delete(number);
  customer.deleted.add(number);
  customer.refundedUsd += body.refunded_usd;
}

async function change(customer: Customer, call: Call, seen: Seen, number: string): Promise<void> {
  const hostname = `r${randomUUID().slice(0, 8)}`;
  const wishes = [{ power_state: 'off' }, { power_state: 'on' }, { action: 'reboot' }];
  const wish = Math.random() < 0.5 ? { hostname } : wishes[Math.floor(Math.random() * wishes.length)]!;
  const { status, body } = await call('PATCH', `/v1/servers/${number}`, wish);
  if (status !== 200) return refused(seen, 'a change', body, 'server_busy', 'validation_failed');
  if ('hostname' in wish) customer.servers.set(number, hostname);
}

const READS = [
  ...['/v1/servers', '/v1/account/balance', '/v1/account/usage', '/v1/account/audit-log', '/v1/billing/topups'],
  ...['/v1/webhooks', '/v1/catalog', '/v1/account', '/v1/auth/sessions', '/v1/ssh-keys'],
];

/** Works until the end, without a pause. */
export async function work(customer: Customer, balancer: Balancer, seen: Seen, over: AbortSignal): Promise<void> {
  const call: Call = (...given) => send(balancer, seen, customer.token, ...given);
  for (let turn = 0; !over.aborted; turn++) {
    const numbers = [...customer.servers.keys()];
    const number = numbers[Math.floor(Math.random() * numbers.length)];
    const { status, body } = await call('GET', READS[turn % READS.length]!);
    if (status !== 200) refused(seen, 'a read', body);
    if (numbers.length < 3 || turn % 5 === 0) await order(customer, call, seen);
    if (number && turn % 3 === 1) await change(customer, call, seen, number);
    if (number && turn % 7 === 3) await remove(customer, call, seen, number);
    if (turn % 10 === 9) await topUp(customer, call, seen);
  }
}
