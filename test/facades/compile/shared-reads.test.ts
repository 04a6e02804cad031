/** The public answers come from memory, and no act of the operator is missed. */
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { newDatabaseUrl } from '../../setup/database.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { administer } from '../../setup/postgres.ts';
import { queriesOf } from '../../setup/queries.ts';

const DATABASE_URL = await newDatabaseUrl();
const { publicUrl, db, operator, newAccount } = await startFreehold({
  DATABASE_URL,
  ROLES: 'api',
  RATE_LIMIT_STORE: 'memory',
});
const [{ name }] = (await db.query<{ name: string }>('select current_database() as name')) as [{ name: string }];
const get = (path: string, etag?: string, url = publicUrl) =>
  fetch(`${url}/v1${path}`, { headers: { connection: 'close', ...(etag && { 'if-none-match': etag }) } });
// biome-ignore lint/suspicious/noExplicitAny: each test checks the members that it reads
const read = async (path: string, url = publicUrl): Promise<any> => (await get(path, undefined, url)).json();
const CATALOG = ['', '/vps', '/dedicated', '/bastions', '/images', '/vps-1'].map((rest) => `/catalog${rest}`);
const WITH_ETAG = [
  ...CATALOG,
  '/billing/coins',
  ...['canary', 'peering', 'status'].map((one) => `/transparency/${one}`),
];

describe('A public answer', () => {
  it.each(WITH_ETAG)('at %s costs no query again, neither whole nor as 304', async (path) => {
    const first = await get(path);
    const text = await first.text();
    const etag = first.headers.get('etag')!;
    const queries = await queriesOf(db, async () => {
      expect(await (await get(path)).text()).toBe(text);
      const again = await get(path, etag);
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    });
    // The bus proves its connection now and then.
    expect(queries.filter(({ text }) => !text.startsWith('listen'))).toEqual([]);
  });
});

describe('An act of the operator', () => {
  let [other, here]: string[] = [];
  beforeAll(async () => {
    const second = await startFreehold({ DATABASE_URL, ROLES: 'api', RATE_LIMIT_STORE: 'memory' });
    [other, here] = [second.publicUrl, publicUrl];
  });
  const CODES = ['CEASE', 'DURESS', 'GAG', 'RAID', 'SEIZE', 'SUBP', 'TRAP', 'WAR', 'XCRED', 'XOPERS'];
  const publishCanary = (statement: string) =>
    operator('mutation ($input: PublishCanaryInput!) { publishCanary(input: $input) { version } }', {
      input: { statement, codes: CODES },
    });

  it.each([
    ['/billing/coins', 'mutation { updateCoin(code: "XMR", available: false) { code } }'],
    ['/catalog', 'mutation { updateRegion(code: "ams", input: {name: "Amstelredam"}) { code } }'],
    ['/catalog/vps', 'mutation { setStock(region: "zrh", serviceCode: "vps-1", total: 0) { total } }'],
    ['/billing/bonus-tiers', 'mutation { setBonusTiers(tiers: [{minUsd: 70, bonusPercent: 7}]) { minUsd } }'],
    [
      '/transparency/status',
      'mutation { publishIncident(input: {name: "Power", status: INVESTIGATING, impact: MAJOR, components: [], body: "We look."}) { id } }',
    ],
  ])('shows at %s at once in its process, and in others as soon as the bus tells them', async (path, mutation) => {
    const before = [await read(path, here), await read(path, other)];
    const { errors } = await operator(mutation);
    expect(errors).toBeUndefined();
    const after = await read(path, here);
    expect(after).not.toEqual(before[0]);
    await eventually(async () => {
      const there = await read(path, other);
      return JSON.stringify({ ...there, updated_at: 0 }) === JSON.stringify({ ...after, updated_at: 0 });
    });
  });

  it('shows after the connection of the bus was lost, though its message was', async () => {
    await publishCanary('Before.');
    expect((await read('/transparency/canary')).statement).toBe('Before.');
    await db.query(`insert into canary (id, version, issued_at, expires_at, codes, statement, sha256)
      select 'can_zzzz', '9', now(), now() + interval '1 day', codes, 'Unheard.', '' from canary limit 1`);
    expect((await read('/transparency/canary')).statement).toBe('Before.');
    const terminate = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and query like 'listen %'`;
    await administer(inject('postgresUrl'), terminate);
    await eventually(async () => (await read('/transparency/canary')).statement === 'Unheard.');
  });
});

describe('An order', () => {
  it('shows in the stock of the catalog, a second later at the latest', async () => {
    const account = await newAccount();
    await account.fund(1_000);
    expect(
      (await operator('mutation { setStock(region: "kef", serviceCode: "vps-1", total: 1) { total } }')).errors,
    ).toBe(undefined);
    const stock = async () =>
      (await read('/catalog/vps-1')).regions.find(({ code }: { code: string }) => code === 'kef').stock;
    expect(await stock()).toBe('low');
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'kef' });
    await eventually(async () => (await stock()) === 'none');
  });
});
