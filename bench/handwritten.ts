/**
 * The peer of the benchmark: three endpoints written by hand with fastify and pg, without GraphQL and TypeORM.
 * It shares the service's statements, order transaction, credential cache, request ids, headers and answers. It counts the same
 * rate limits, in its own way.
 * It omits contract checks, logs, the bounds against slow and greedy callers, and the notification bus.
 */
import { createHash, hash, randomBytes } from 'node:crypto';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import pg from 'pg';
import { FIND_API_KEY } from '../entities/accounts/credential.ts';
import { stockLevel } from '../entities/catalog.ts';
import { recordParameters } from '../entities/history/record.ts';
import { newId, newOrderNumber, randomText } from '../entities/ids.ts';
import { newMachinePassword, Vault } from '../entities/secrets.ts';
import { FIND_SERVER } from '../entities/servers/find.ts';
import { ORDER_SERVER, READ_ORDER_FACTS } from '../entities/servers/order.ts';
import { ROOT_PASSWORD, SHOWN_COLUMNS, USER_DATA } from '../entities/servers/server.ts';
import { startTaskParameters } from '../entities/tasks/start.ts';
import { API_HEADERS } from '../facades/http/headers.ts';
import { serverTask } from '../provisioning/index.ts';
import type { ServerOrder } from '../resolvers/servers/order-facts.ts';

pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);

const { DATABASE_URL, PORT } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 10 });
const vault = new Vault(randomBytes(32));
const app = Fastify({
  logger: false,
  genReqId: () => newId('req'),
  // Fastify's own default would silently drop unknown members.
  ajv: { customOptions: { removeAdditional: false } },
});
app.addHook('onRequest', (request, reply, done) => {
  reply.headers(API_HEADERS).header('x-request-id', request.id);
  done();
});

interface Viewer {
  account_id: string;
  credential_id: string;
  name: string;
  scope: string;
  expires_at: Date | null;
  revoked_at: Date | null;
}

class Refused extends Error {
  readonly statusCode: number;
  constructor(statusCode: number, code: string) {
    super(code);
    this.statusCode = statusCode;
  }
}

const viewers = new Map<string, Viewer>();

async function admitted(request: FastifyRequest, reply: FastifyReply): Promise<Viewer> {
  const viewer = await viewerOf(request);
  limited(viewer, reply);
  return viewer;
}

async function viewerOf({ headers: { authorization } }: FastifyRequest): Promise<Viewer> {
  if (!authorization?.startsWith('Bearer ')) throw new Refused(401, 'missing_credential');
  const credential = authorization.slice(7);
  const cacheKey = hash('sha256', credential, 'base64');
  const cached = viewers.get(cacheKey);
  if (cached) return cached;
  const digest = createHash('sha256').update(credential).digest();
  const [viewer] = (await pool.query<Viewer>({ name: 'key', text: FIND_API_KEY.text, values: [digest] })).rows;
  if (!viewer || viewer.revoked_at || (viewer.expires_at && viewer.expires_at.getTime() <= Date.now()))
    throw new Refused(401, 'invalid');
  viewers.set(cacheKey, viewer);
  return viewer;
}

/** The quota of `spawnService`. */
const QUOTA = 1_000_000;

/** A sliding window of calls, as the service counts them. */
class Window {
  readonly #name: string;
  readonly #seconds: number;
  #index = 0;
  #current = 0;
  #before = 0;

  constructor(name: string, seconds: number) {
    this.#name = name;
    this.#seconds = seconds;
  }

  get policy() {
    return `"${this.#name}";q=${QUOTA};w=${this.#seconds}`;
  }

  /** Counts a call at this second. @returns the calls that are left */
  take(now: number): number {
    const index = Math.floor(now / this.#seconds);
    if (index !== this.#index) {
      this.#before = index === this.#index + 1 ? this.#current : 0;
      this.#current = 0;
      this.#index = index;
    }
    const weight = Math.min(1, 1 - (now - index * this.#seconds) / this.#seconds);
    return Math.floor(QUOTA - ++this.#current - this.#before * weight);
  }

  show(left: number, now: number) {
    return `"${this.#name}";r=${left};t=${this.resetIn(now)}`;
  }

  resetIn(now: number) {
    return Math.max(1, Math.ceil((this.#index + 1) * this.#seconds - now));
  }
}

const windows = new Map<string, Window[]>();
const windowsOf = (id: string, minute: string, hour: string): Window[] => {
  const known = windows.get(id);
  if (known) return known;
  const made = [new Window(minute, 60), new Window(hour, 3600)];
  windows.set(id, made);
  return made;
};

function limited({ credential_id: credentialId, account_id: accountId }: Viewer, reply: FastifyReply) {
  const now = Date.now() / 1000;
  const all = [...windowsOf(credentialId, 'minute', 'hour'), ...windowsOf(accountId, 'account', 'account_hour')];
  let tightest = all[0]!;
  let least = Number.POSITIVE_INFINITY;
  let shown = '';
  let policy = '';
  for (const window of all) {
    const left = window.take(now);
    if (left < 0) throw new Refused(429, 'rate_limited');
    shown += `${shown && ', '}${window.show(left, now)}`;
    policy += `${policy && ', '}${window.policy}`;
    if (left < least) [tightest, least] = [window, left];
  }
  reply.header('ratelimit-policy', policy).header('ratelimit', shown);
  reply.header('x-ratelimit-limit', String(QUOTA)).header('x-ratelimit-remaining', String(least));
  reply.header('x-ratelimit-reset', String(Math.floor(now) + tightest.resetIn(now)));
}

const IN_PROGRESS = /^(PENDING|PROVISIONING|STARTING|STOPPING|REBOOTING|REBUILDING|RESIZING|DELETING)$/;

// biome-ignore lint/suspicious/noExplicitAny: rows of the driver, as handwritten code reads them
type Row = Record<string, any>;
const answerOf = (server: Row) => ({
  order_number: server.order_number,
  kind: server.kind.toLowerCase(),
  status: server.status.toLowerCase(),
  hostname: server.hostname,
  service_code: server.service_code,
  region: server.region,
  os: server.os,
  ipv4: server.ipv4,
  ipv6: server.ipv6,
  ipv6_prefix: server.ipv6_prefix,
  reverse_dns: server.reverse_dns,
  ssh_key_ids: server.ssh_key_ids,
  labels: server.labels,
  auto_renew: server.auto_renew,
  delete_protection: server.delete_protection,
  price_month_usd: Number(server.price_month_micros) / 1e6,
  next_price_month_usd: server.next_price_micros === null ? null : Number(server.next_price_micros) / 1e6,
  next_price_from: server.next_price_from,
  paid_until: server.paid_until,
  failure: server.failure_code ? { code: server.failure_code, message: server.failure_message ?? '' } : null,
  traffic_used_gb: (server.traffic_used_bytes ?? null) === null ? null : Number(server.traffic_used_bytes) / 1e9,
  created_at: server.created_at,
  updated_at: server.updated_at,
  poll_after_seconds: IN_PROGRESS.test(server.status) ? 2 : null,
});

const one = async (request: FastifyRequest, reply: FastifyReply) => {
  const viewer = await admitted(request, reply);
  const { order_number: orderNumber } = request.params as { order_number: string };
  const [server] = (
    await pool.query<Row>({ name: 'server', text: FIND_SERVER.text, values: [orderNumber, viewer.account_id] })
  ).rows;
  if (!server) throw new Refused(404, 'not_found');
  return answerOf(server);
};

const list = (after: string) =>
  `select ${SHOWN_COLUMNS} from server where status <> 'DELETED' and account_id = $2${after} order by id desc limit $1`;
const [LIST, LIST_AFTER] = [list(''), list(' and id < $3')];
const NO_FILTERS = createHash('sha256')
  .update('{"status":null,"region":null,"hostname":null}')
  .digest('base64url')
  .slice(0, 8);

const page = async (request: FastifyRequest, reply: FastifyReply) => {
  const viewer = await admitted(request, reply);
  const { limit, cursor } = request.query as { limit: number; cursor?: string };
  const after = cursor && Buffer.from(cursor, 'base64url').toString().split(' ')[0];
  const { rows: servers } = await (after
    ? pool.query<Row>({ name: 'after', text: LIST_AFTER, values: [limit + 1, viewer.account_id, after] })
    : pool.query<Row>({ name: 'list', text: LIST, values: [limit + 1, viewer.account_id] }));
  const more = servers.length > limit;
  return {
    data: servers.slice(0, limit).map(answerOf),
    next_cursor: more ? Buffer.from(`${servers[limit - 1]!.id} ${NO_FILTERS}`).toString('base64url') : null,
    has_more: more,
  };
};

interface Body {
  service_code: string;
  region?: string;
  os: string;
  hostname?: string;
  ssh_key_ids?: string[];
  root_password?: string;
  user_data?: string;
  labels: ServerOrder['labels'];
  auto_renew: boolean;
  max_price_usd?: number;
}

const order = async (request: FastifyRequest, reply: FastifyReply) => {
  const viewer = await admitted(request, reply);
  const body = request.body as Body;
  const client = await pool.connect();
  try {
    const { service_code, os, ssh_key_ids = null, region = null } = body;
    const values = [viewer.account_id, service_code, os, ssh_key_ids, region, !region];
    const { rows: facts } = await client.query<Row>({ name: 'order facts', text: READ_ORDER_FACTS.text, values });
    await client.query('start transaction');
    const answer = await orderWith(client, viewer, body, facts[0]!);
    await client.query('commit');
    return answer;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
};

async function orderWith(tx: pg.PoolClient, viewer: Viewer, body: Body, facts: Row) {
  const { account_id: accountId, credential_id: credentialId, name } = viewer;
  const balances = await tx.query<{ micros: bigint }>({
    name: 'balance',
    text: 'select available_micros as micros from balance where account_id = $1 for update',
    values: [accountId],
  });
  const { tier, region, keys } = check(body, facts);
  const rootPassword = body.root_password ?? (keys.length ? null : newMachinePassword());
  const orderNumber = newOrderNumber('SRV');
  const priceMicros = BigInt(tier.priceMonthMicros) + BigInt(tier.setupFeeMicros);
  if (balances.rows[0]!.micros < priceMicros) throw new Refused(402, 'insufficient_balance');
  const kind = tier.kind === 'vps' ? 'VPS' : 'DEDICATED';
  const values = [
    accountId,
    priceMicros,
    newId('xfr'),
    orderNumber,
    body.service_code,
    newId('srv'),
    kind,
    body.hostname?.toLowerCase() ?? `srv-${randomText(6)}`,
    region,
    body.os,
    keys.map(({ id }: Row) => id),
    keys.map(({ publicKey }: Row) => publicKey),
    body.user_data === undefined ? null : USER_DATA.seal(vault, body.user_data, orderNumber),
    rootPassword && ROOT_PASSWORD.seal(vault, rootPassword, orderNumber),
    JSON.stringify(body.labels),
    body.auto_renew,
    tier.priceMonthMicros,
    tier.setupFeeMicros,
    ...[SERVERS_MAX, credentialId, null, credentialId],
    ...startTaskParameters(serverTask({ kind, orderNumber, accountId, host: null })),
    ...recordParameters({
      type: 'server.created',
      actor: { type: 'api_key', id: credentialId, name, requestId: newId('req') },
      data: { status: 'PENDING' },
    }),
  ];
  const [server] = (await tx.query<Row>({ name: 'order', text: ORDER_SERVER.text, values })).rows;
  if (!server) throw new Refused(422, 'out_of_stock');
  return {
    ...answerOf(server),
    charged_usd: Number(priceMicros) / 1e6,
    paid_by: 'balance',
    root_password: rootPassword,
  };
}

const SERVERS_MAX = 1_000_000;

function check(body: Body, { tier, image_offered, keys, regions, bastions, servers }: Row) {
  if (!tier) throw new Refused(422, 'unknown_service_code');
  if (!image_offered) throw new Refused(422, 'unknown_os');
  if (body.ssh_key_ids?.some((id) => !keys.some((key: Row) => key.id === id)))
    throw new Refused(422, 'unknown_ssh_key');
  if (body.region && !bastions.includes(body.region)) throw new Refused(422, 'unknown_region');
  const region =
    body.region ?? regions.find((stock: Parameters<typeof stockLevel>[0]) => stockLevel(stock) !== 'NONE')?.code;
  if (!region) throw new Refused(422, 'out_of_stock');
  const priceMicros = Number(tier.priceMonthMicros) + Number(tier.setupFeeMicros);
  if (body.max_price_usd !== undefined && priceMicros > body.max_price_usd * 1e6) throw new Refused(422, 'price');
  if (servers >= SERVERS_MAX) throw new Refused(422, 'server_limit_reached');
  return { tier, region, keys };
}

const code = { type: 'string', minLength: 1, maxLength: 32 };
const body = {
  type: 'object',
  required: ['service_code'],
  additionalProperties: false,
  properties: {
    service_code: code,
    region: code,
    os: { ...code, default: 'debian-13' },
    hostname: {
      type: 'string',
      maxLength: 253,
      pattern: '^(?!.*-(\\.|$))[a-zA-Z0-9][a-zA-Z0-9-]{0,62}(\\.[a-zA-Z0-9][a-zA-Z0-9-]{0,62})*$',
    },
    ssh_key_ids: { type: 'array', maxItems: 20, uniqueItems: true, items: { type: 'string', maxLength: 64 } },
    root_password: { type: 'string', minLength: 12, maxLength: 72 },
    user_data: { type: 'string', minLength: 1, maxLength: 65_536 },
    labels: {
      type: 'object',
      default: {},
      maxProperties: 20,
      propertyNames: { pattern: '^[a-z0-9]([a-z0-9_./-]{0,61}[a-z0-9])?$' },
      additionalProperties: { type: 'string', maxLength: 63 },
    },
    auto_renew: { type: 'boolean', default: true },
    max_price_usd: { type: 'number', minimum: 0 },
  },
};
const querystring = {
  type: 'object',
  additionalProperties: false,
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 200, default: 50 },
    cursor: { type: 'string', minLength: 1, maxLength: 200 },
  },
};

app.get('/v1/servers/:order_number', one);
app.get('/v1/servers', { schema: { querystring } }, page);
app.post('/v1/servers', { schema: { body } }, order);
await app.listen({ port: Number(PORT), host: '127.0.0.1' });
console.log('listening');
