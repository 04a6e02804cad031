/**
 * Customers at work while parts of the service die. Each repeats a call with one idempotency key until the service answers.
 * The load keeps what the service has acknowledged, and how long each answer took with its repetitions.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Received, type Receiver, startReceiver, verify } from '../setup/receiver.ts';

const REGIONS = ['ams', 'zrh', 'kef', 'buh'];
const PAUSE_MS = 50;
/** A client repeats a call that has no answer for so long. */
const PATIENCE_MS = 5_000;
/** The longest wait of one read for a state. */
const WAIT_SECONDS = 2;
const FIRST_TOP_UP_USD = 120;
const TOP_UP_USD = 30;
/** The answers of a service or a proxy that is about to recover. */
const REPEATED = new Set([502, 503, 504]);

/** An answer that came, on the clock of performance.now(). */
export interface Answered {
  call: string;
  /** Whether the call changed something. */
  isChange: boolean;
  startedAt: number;
  endedAt: number;
}

export interface Customer {
  id: string;
  accessToken: string;
  receiver: Receiver;
  secret: string;
}

interface Acknowledged {
  /** The last acknowledged name of each server. */
  servers: Map<string, string>;
  deleted: Set<string>;
  topUps: Set<string>;
}

// biome-ignore lint/suspicious/noExplicitAny: each caller knows the members of its answer
type Body = any;

export interface LoadOptions {
  /** The addresses of the service, as its customers know them. */
  urls: readonly string[];
  customers: number;
  /** The address of this machine for webhooks. */
  host?: string;
}

export class Load {
  readonly answers: Answered[] = [];
  readonly acknowledged: Acknowledged = { servers: new Map(), deleted: new Set(), topUps: new Set() };
  /** Effects that a customer has lost, and answers that the service does not announce. */
  readonly faults: string[] = [];
  /** Whether a customer could not go on. */
  isStuck = false;
  readonly customers: Customer[] = [];
  /** Seconds from each order until its server ran. */
  readonly deliveries: { at: number; seconds: number }[] = [];
  readonly #options: LoadOptions;
  #keys = 0;
  #over = false;
  #working: Promise<unknown> = Promise.resolve();

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Registers the customers, and lets them work. */
  async start(): Promise<void> {
    for (let i = 0; i < this.#options.customers; i++) this.customers.push(await this.#register(i));
    this.#working = Promise.allSettled(this.customers.map((customer, i) => this.#work(customer, i)));
  }

  /** Ends when each customer has ended its round. */
  async stop(): Promise<void> {
    this.#over = true;
    await this.#working;
  }

  async close(): Promise<void> {
    await Promise.all(this.customers.map(({ receiver }) => receiver.close()));
  }

  /** The longest time without an answer to a change, and the longest call, since a moment. */
  since(moment: number): { gapSeconds: number; callSeconds: number } {
    const answers = this.answers.filter(({ endedAt }) => endedAt >= moment);
    const ends = answers.filter(({ isChange }) => isChange).map(({ endedAt }) => endedAt);
    const gaps = [...ends, performance.now()].map((end, i) => end - (ends[i - 1] ?? moment));
    const calls = answers.map(({ startedAt, endedAt }) => endedAt - Math.max(startedAt, moment));
    return { gapSeconds: Math.max(0, ...gaps) / 1000, callSeconds: Math.max(0, ...calls) / 1000 };
  }

  async #register(i: number): Promise<Customer> {
    const host = this.#options.host ?? '127.0.0.1';
    const receiver = await startReceiver(0, host);
    const login = { email: `failover-${process.pid}-${i}@example.org`, password: `a heron on roof number ${i}` };
    const { account, tokens } = await this.#ask('POST', '/v1/auth/register', undefined, login);
    const accessToken = tokens.access_token as string;
    const url = `http://${host}:${receiver.port}/hook`;
    const { secret } = await this.#ask('POST', '/v1/webhooks', accessToken, { url, event_filter: '*' });
    const customer = { id: account.id, accessToken, receiver, secret };
    await this.#topUp(customer, FIRST_TOP_UP_USD);
    return customer;
  }

  async #work(customer: Customer, i: number): Promise<void> {
    for (let round = 0; !this.#over; round++) {
      if (round % 4 === 3) await this.#topUp(customer, TOP_UP_USD);
      await this.#useServer(customer, REGIONS[(i + round) % REGIONS.length]!, `c${i}-${round}`);
    }
  }

  async #topUp({ accessToken }: Customer, amount: number): Promise<void> {
    const ask = { amount_usd: amount, crypto: 'USDC-BASE' };
    const { order_number } = await this.#ask('POST', '/v1/billing/topups', accessToken, ask);
    this.acknowledged.topUps.add(order_number);
    const isConfirmed = ({ status }: Body) => status === 'confirmed';
    await this.#until(isConfirmed, `/v1/billing/topups/${order_number}`, accessToken);
  }

  /** Orders a server, waits for its machine, renames it, and deletes it. Each read must see the change before it. */
  async #useServer({ accessToken }: Customer, region: string, hostname: string): Promise<void> {
    const { servers, deleted } = this.acknowledged;
    const order = { service_code: 'vps-1', region, hostname };
    const { order_number } = await this.#ask('POST', '/v1/servers', accessToken, order);
    const path = `/v1/servers/${order_number}`;
    const orderedAt = performance.now();
    servers.set(order_number, hostname);
    await this.#until(
      ({ status }) => status === 'running',
      `${path}?wait_for=running&timeout=${WAIT_SECONDS}`,
      accessToken,
    );
    this.deliveries.push({ at: orderedAt, seconds: (performance.now() - orderedAt) / 1000 });
    for (const name of [`${hostname}-a`, `${hostname}-b`]) {
      await this.#ask('PATCH', path, accessToken, { hostname: name });
      servers.set(order_number, name);
      const read = await this.#ask('GET', path, accessToken);
      if (read.hostname !== name)
        this.faults.push(`${order_number} is ${read.hostname} after its name became ${name}.`);
    }
    await this.#ask('DELETE', path, accessToken);
    deleted.add(order_number);
    await this.#until(
      ({ status }) => status === 'deleted',
      `${path}?wait_for=deleted&timeout=${WAIT_SECONDS}`,
      accessToken,
    );
  }

  async #until(isReached: (body: Body) => boolean, path: string, accessToken: string): Promise<void> {
    while (!isReached(await this.#ask('GET', path, accessToken))) await sleep(PAUSE_MS);
  }

  /** Repeats a call until the service answers it. */
  async #ask(method: string, path: string, accessToken?: string, body?: object): Promise<Body> {
    const key = `failover-${process.pid}-${++this.#keys}`;
    const { urls } = this.#options;
    // A deleted server is no longer found. The end of the load looks for lost ones.
    const isGone = path.includes('wait_for=deleted');
    const startedAt = performance.now();
    for (let attempt = this.#keys; ; attempt++) {
      const answer = await send(urls[attempt % urls.length]! + path, method, key, accessToken, body);
      if (answer && (answer.status < 300 || (isGone && answer.status === 404))) {
        const call = `${method} ${path.split('?')[0]}`;
        const isChange = method !== 'GET';
        this.answers.push({ call, isChange, startedAt, endedAt: performance.now() });
        return answer.status === 404 ? { status: 'deleted' } : answer.body;
      }
      // A second deletion may meet the first one, whose answer was lost.
      if (answer && !REPEATED.has(answer.status) && answer.body?.code !== 'idempotency_in_progress') {
        const fault = `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`;
        this.faults.push(fault);
        this.isStuck = answer.status < 500;
        if (this.isStuck) throw new Error(fault);
      }
      await sleep(PAUSE_MS);
    }
  }
}

/** @returns the answer, or nothing if none came */
async function send(url: string, method: string, key: string, accessToken?: string, body?: object) {
  try {
    const response = await fetch(url, {
      method,
      signal: AbortSignal.timeout(PATIENCE_MS),
      headers: {
        ...(accessToken && { authorization: `Bearer ${accessToken}` }),
        ...(method !== 'GET' && { 'idempotency-key': key }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = /[/+]json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, body: isJson ? (JSON.parse(text) as Body) : text };
  } catch {
    return undefined;
  }
}

/** Checks the messages of a receiver. @returns the ids of its events, and a sentence for each wrong message */
export function messagesOf({ receiver, secret }: Customer): { ids: Set<string>; faults: string[] } {
  const faults: string[] = [];
  const bodies = new Map<string, string>();
  for (const message of receiver.received) {
    const id = message.headers['webhook-id']!;
    const fault =
      faultOf(message, secret) ?? ((bodies.get(id) ?? message.raw) === message.raw ? undefined : 'It changed.');
    if (fault) faults.push(`The message ${id}: ${fault}`);
    bodies.set(id, message.raw);
  }
  return { ids: new Set(bodies.keys()), faults };
}

/** The time in a signature is that of the attempt, and the load lasts longer than a signature. */
function faultOf(message: Received, secret: string): string | undefined {
  try {
    verify(secret, message);
    return undefined;
  } catch (error) {
    return /too old/.test(String(error)) ? undefined : String(error);
  }
}
