/** No request reads more rows because an account, or the directory, has many. */
import { describe, expect, it } from 'vitest';
import type { Transaction } from '../../entities/database/transaction.ts';
import { idFloor, newId } from '../../entities/ids.ts';
import { available, gateway, held, post } from '../../entities/payments/ledger.ts';
import { asSuperuser } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';
import { queriesOf } from '../setup/queries.ts';

const { anonymous, db, newAccount } = await startFreehold({
  ROLES: 'api',
  RATE_LIMIT_STORE: 'memory',
  RATE_LIMIT_PUBLIC_PER_MINUTE: '1000',
});
const ROWS = 20_000;
const X402_MODE = { 'x-payment-mode': 'x402' };
const { id: account, rest } = await newAccount();
const now = Date.now();

/** Fills a table with rows of the account, the newest a minute old. `n` counts them. */
const fill = (table: string, prefix: Parameters<typeof idFloor>[0], columns: string, values: string, rows = ROWS) => {
  const ids = Array.from(
    { length: rows },
    (_, i) => `${idFloor(prefix, now - 60_000 - (rows - i) * 2_000)}${newId(prefix).slice(-16)}`,
  );
  return asSuperuser(
    db,
    `insert into ${table} (id, account_id, ${columns}) select id, $2, ${values} from unnest($1::text[]) with ordinality as given (id, n)`,
    [ids, account],
  );
};
const at = `to_timestamp(${now / 1000} - 60 - (${ROWS} - n) * 2)`;
await fill(
  'top_up',
  'top',
  'order_number, status, mode, amount_micros, bonus_micros, crypto, network, amount_crypto, received_crypto, rate_micros, confirmations, confirmations_required, credited_micros',
  `'TOP-' || n, 'CANCELLED', 'CRYPTO', 1, 0, 'BTC', 'bitcoin', '1', '0', 1, 0, 1, 0`,
);
await fill(
  'server',
  'srv',
  'order_number, kind, status, hostname, service_code, region, os, price_month_micros, setup_fee_micros',
  `'SRV-' || n, 'VPS', case when n % 2000 = 0 then 'RUNNING' else 'DELETED' end, 'web', 'vps-1', 'zrh', 'x', 1, 0`,
);
await fill('api_key', 'key', 'name, scope, prefix, digest, status', `'k', 'read', 'p', sha256(id::bytea), 'REVOKED'`);
await fill(
  'session',
  'tok',
  'family_id, source, scope, access_digest, expires_at, refresh_expires_at, family_expires_at, revoked_at',
  `id, 'login', 'read', sha256(id::bytea), now(), now(), now(), now()`,
);
await fill('audit_entry', 'aud', 'action, actor_type, created_at', `'api.request', 'system', ${at}`);
await fill(
  'transfer',
  'xfr',
  'kind, debit, credit, amount_micros, external_key, description, created_at',
  `'adjustment', 'gateway:test', 'available:' || $2, 1, id, 'x', ${at}`,
);
const newKey = async (limits: object, maker: Record<string, string> = {}) =>
  (await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full', ...limits }, maker)).body;
const by = (key: { plaintext: string }) => ({ authorization: `Bearer ${key.plaintext}` });
const limited = await newKey({ spend_limit_usd: 1_000 });
const keys = { limited, created: await newKey({ spend_limit_usd: 10 }, by(limited)), unlimited: await newKey({}) };
const released = (kind: string, sides: string, more: [columns: string, values: string] = ['', '']) =>
  fill(
    'transfer',
    'xfr',
    `kind, debit, credit, amount_micros, external_key, description, created_at ${more[0]}`,
    `'${kind}', ${sides}, 1, '${kind}:SRV-' || n, 'x', ${at} ${more[1]}`,
  );
await released('hold', `'available:' || $2, 'held:' || $2`, [
  ', credential_id, limited_by',
  `, ('{${keys.created.key_id},${keys.limited.key_id},${keys.unlimited.key_id}}'::text[])[1 + n % 3],
    case n % 3 when 0 then '${keys.limited.key_id}' end`,
]);
await released('release', `'held:' || $2, 'available:' || $2`);
await asSuperuser(
  db,
  `insert into usage_day select account_id, (created_at at time zone 'UTC')::date, count(*) from transfer group by 1, 2`,
);
await asSuperuser(
  db,
  `insert into spending_month select credential_id, '2000-01-01'::date + n, 1 from (select distinct credential_id from transfer
    where credential_id is not null) as spender cross join generate_series(1, ${ROWS}) as n`,
);
await fill(
  'agent',
  'agt',
  'slug, name, description, url, status, endpoints, skills, skill_terms',
  `'bot-' || n, 'Bot', 'Works at ' || case n % 2 when 0 then 'night' else 'dawn' end, 'https://bot.example.org', 'LISTED',
    '[{"protocol": "MCP", "url": "https://bot.example.org"}]', '[]', array['work']`,
  2_000,
);
await asSuperuser(db, 'vacuum analyze');

/** Counts since the connection last reported its statistics, which it never does within a transaction. */
const COUNT = `select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint as rows from pg_stat_xact_user_tables
  where relname in ('top_up', 'server', 'api_key', 'session', 'audit_entry', 'transfer', 'agent', 'usage_day', 'spending_month')`;

/** Reads the address, and then returns how many rows its statements read from tables, by their indexes or without. */
async function rowsRead(read: () => Promise<{ status: number }>, status = 200): Promise<number> {
  const queries = await queriesOf(db, async () => expect((await read()).status).toBe(status));
  return rowsReadIn(async (tx) => {
    for (const { text, values } of queries) if (/^\s*(select|with)\b/i.test(text)) await tx.query(text, values);
  });
}
const rowsReadIn = (work: (tx: Transaction) => Promise<unknown>): Promise<number> =>
  db.transaction(async (tx) => {
    const count = async () => Number((await tx.query<{ rows: bigint }>(COUNT))[0]!.rows);
    const before = await count();
    await work(tx);
    return (await count()) - before;
  });
const time = (ms: number) => new Date(now + ms).toISOString();

describe(`A request of an account with ${ROWS} rows of each kind`, () => {
  it.each([
    ...['CANCELLED', 'PENDING', 'CONFIRMED'].map((status) => `billing/topups?status=${status.toLowerCase()}`),
    ...['active', 'revoked', 'expired'].map((status) => `auth/api-keys?status=${status}`),
    'auth/sessions?',
    ...['', 'status=stopped', 'status=failed,running', 'region=none', 'hostname=none', 'label_selector=a=b'].map(
      (filter) => `servers?${filter}`,
    ),
    `account/audit-log?since=${time(60_000)}`,
    `account/audit-log?until=${time(-36_000_000)}`,
    'account/audit-log?action=webhook.disabled',
    `account/audit-log?action=api.request&since=${time(60_000)}`,
    `account/usage?from=${time(-86_400_000)}`,
    'account/balance?',
  ])('reads few of them for GET /v1/%s', async (address) => {
    expect(
      await rowsRead(() => rest('GET', `/v1/${address}&limit=10`.replace('balance?&limit=10', 'balance'))),
    ).toBeLessThan(500);
  });
});

/** The usage of all rows. By default, it begins with the month. */
const USAGE = `limit=100&from=${time(-86_400_000)}`;
it('A late page of the usage reads as few rows as the first one', async () => {
  const page = async (cursor = '') => (await rest('GET', `/v1/account/usage?${USAGE}${cursor}`)).body;
  let { next_cursor: cursor } = await page();
  for (let n = 0; n < 20; n++) cursor = (await page(`&cursor=${cursor}`)).next_cursor;
  expect(await rowsRead(() => rest('GET', `/v1/account/usage?${USAGE}&cursor=${cursor}`))).toBeLessThan(500);
});

it(`A receipt reads its 1,000 lines, and not all ${ROWS} changes of an account`, async () => {
  const month = time(-3_600_000).slice(0, 7);
  expect(await rowsRead(() => rest('GET', `/v1/billing/receipts/${month}`))).toBeLessThan(5_000);
});

it(`The receipt of a top-up reads its lines, and not all ${ROWS} later changes of the account`, async () => {
  const order = 'TOP-0123456789';
  await asSuperuser(
    db,
    `update top_up set order_number = $1, status = 'CONFIRMED', created_at = $2 where order_number = 'TOP-1'`,
    [order, time(-86_400_000)],
  );
  await asSuperuser(
    db,
    `update transfer set order_number = $1 where id in (select id from transfer where kind = 'adjustment' limit 3)`,
    [order],
  );
  let total: number | undefined;
  const read = async () => {
    const { status, body } = await rest('GET', `/v1/billing/topups/${order}/receipt`);
    total = body.total_usd;
    return { status };
  };
  expect(await rowsRead(read)).toBeLessThan(100);
  expect(total).toBe(0.000003);
});

describe(`An order of an account with ${ROWS} released holds of a key with a limit`, () => {
  it.each([
    ['limited', 'from the balance', {}],
    ['limited', 'by x402', X402_MODE],
    ['created', 'from the balance', {}],
    ['created', 'by x402', X402_MODE],
    ['unlimited', 'from the balance', {}],
  ] as const)('reads few of them: the %s key, %s', async (key, _, headers) => {
    const order = { service_code: 'vps-1', os: 'debian-13' };
    expect(
      await rowsRead(() => rest('POST', '/v1/servers', order, { ...headers, ...by(keys[key]) }), 402),
    ).toBeLessThan(500);
  });
});

it('A hold, and its release, read few rows of a large ledger', async () => {
  const [free, taken, amountMicros] = [available(account), held(account), 5n];
  const posting = { amountMicros, description: 'x' };
  const spender = { credentialId: keys.created.key_id, limitedBy: keys.limited.key_id };
  const hold = { ...posting, ...spender, kind: 'hold', debit: free, credit: taken, externalKey: 'hold:1' } as const;
  const release = { ...posting, kind: 'release', debit: taken, credit: free, externalKey: 'release:1' } as const;
  const topUp = { ...posting, kind: 'topup', debit: gateway('x'), credit: free, externalKey: 'top-up' } as const;
  const read = await rowsReadIn(async (tx) => {
    for (const one of [topUp, hold, release]) await post(tx, account, one);
  });
  expect(read).toBeLessThan(50);
});

describe('A search of the directory', () => {
  it.each([
    ['q=zzqx', 0],
    ['q=night+dawn', 0],
    ['q=%25', 0],
    ['q=bot&skill=none', 0],
    ['skill=none', 0],
    ['protocol=a2a', 0],
    ['verified=true', 0],
    ['', 10],
    ['q=bot-1999', 1],
  ])('reads only entries that fit, for %s', async (filter, fit) => {
    const address = `/v1/agents/directory?limit=9&${filter}`;
    // Each entry is read once by the search and once for the page.
    expect(await rowsRead(() => anonymous('GET', address))).toBeLessThanOrEqual(2 * fit);
  });

  it('finds the beginnings of words, in each letter case and order, and never parts of their middle', async () => {
    const found = async (q: string) => (await anonymous('GET', `/v1/agents/directory?limit=1&q=${q}`)).body.data.length;
    for (const q of ['nig', 'NIGHT+wo', 'bot-19', 'works+at+night', 'b']) expect([q, await found(q)]).toEqual([q, 1]);
    for (const q of ['ight', 'night+morning', '-', 'nights']) expect([q, await found(q)]).toEqual([q, 0]);
  });
});
