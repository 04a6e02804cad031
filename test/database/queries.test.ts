/** The cost of requests for the database: the number of queries, and the use of an index for each page. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { asSuperuser } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';
import { type Query, queriesOf } from '../setup/queries.ts';

const { db, newAccount } = await startFreehold({ ROLES: 'api', RATE_LIMIT_STORE: 'memory' });

/** The process writes and links entries, listens, and looks for work by itself. */
const OWN_WORK =
  /audit_unlinked|pg_advisory_xact_lock|insert into audit_entry|\b(task|chain|chain_block|coin_rate|payment)\b|^(START TRANSACTION|COMMIT)$|^(listen|set) /;
const isOfCaller = ({ text }: Query) => !OWN_WORK.test(text);

describe('A request', () => {
  it('with a known credential costs no query for the credential or for the count of its calls', async () => {
    const { rest } = await newAccount();
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'r', scope: 'read' });
    const read = () => rest('GET', '/v1/account/balance', undefined, { authorization: `Bearer ${key.plaintext}` });
    // A revocation empties the cache, also a late one. Without the bus, nothing is cached.
    let losses = 0;
    db.bus.listen(({ kind }) => kind === 'credential' && losses++);
    const isOfRead = (text: string) => /\b(from|into|update) (api_key|session|rate|balance)\b/.test(text);
    const queries = async () => (await queriesOf(db, read)).map(({ text }) => text).filter(isOfRead);
    expect(await queries()).toContainEqual(expect.stringContaining('api_key'));
    const known: string[][] = [];
    for (const end = Date.now() + 20_000; known.length < 10 && Date.now() < end; ) {
      const before = losses;
      await read();
      const texts = await queries();
      if (db.bus.connected && losses === before) known.push(texts);
    }
    expect(known).toEqual(Array.from({ length: 10 }, () => [expect.stringContaining('from balance')]));
    expect((await read()).headers.get('ratelimit')).toBeTruthy();
  });
});

describe('A list', async () => {
  const ROWS = 2_000;
  const { id: accountId, rest } = await newAccount();
  const ids = (prefix: Parameters<typeof newId>[0]) => Array.from({ length: ROWS }, () => newId(prefix));
  const fill = (sql: string, prefix: Parameters<typeof newId>[0]) =>
    db.query(`${sql} from unnest($1::text[]) with ordinality as given(id, n)`, [ids(prefix), accountId]);
  await fill(
    `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, price_month_micros, setup_fee_micros)
      select id, case n % 2 when 0 then $2 else 'acct_other' end, 'SRV-' || n, 'VPS', 'RUNNING', 'web', 'vps-1', 'zrh', 'x', 1, 0`,
    'srv',
  );
  await db.query(
    `insert into meter (order_number, epoch, read_at, month) select order_number, '', now(), '2020-01' from server`,
  );
  await fill(
    `insert into audit_entry (id, account_id, action, actor_type)
      select id, case n % 2 when 0 then $2 else 'acct_other' end, 'api.request', 'system'`,
    'aud',
  );
  await fill(
    `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
      select id, $2, 'adjustment', 'gateway:test', 'available:' || $2, 1, id, 'x'`,
    'xfr',
  );
  await asSuperuser(db, 'analyze');

  /** Names of the nodes of a plan, and of its indexes. */
  const planOf = async ({ text, values }: Query) => {
    const [plan] = await db.query<Record<string, unknown>>(`explain (format json) ${text}`, values);
    const found: string[] = [];
    JSON.stringify(plan, (name, value) => {
      if (name === 'Node Type' || name === 'Index Name') found.push(value);
      return value;
    });
    return found;
  };

  it.each([
    ['/v1/servers', 'server', ['', 'status=running', 'region=zrh', 'label_selector=a%21%3Db']],
    [
      '/v1/account/audit-log',
      'audit_entry',
      ['', 'action=api.request', 'action=webhook.disabled', 'since=2020-01-01T00:00:00Z', 'until=2100-01-01T00:00:00Z'],
    ],
    ['/v1/account/usage', 'transfer', ['']],
  ])('%s finds each of its pages by an index, and sorts nothing', async (path, table, filters) => {
    for (const filter of filters) {
      const page = `${path}?limit=10&${filter}`;
      const { body } = await rest('GET', page);
      for (const address of [page, ...(body.has_more ? [`${page}&cursor=${body.next_cursor}`] : [])]) {
        const queries = await queriesOf(db, () => rest('GET', address));
        const paged = queries
          .filter(isOfCaller)
          .filter(({ text }) => text.includes(` ${table}`) && /limit \$/.test(text));
        expect(paged, address).toHaveLength(1);
        expect(paged[0]!.text).not.toMatch(/offset/i);
        const plan = await planOf(paged[0]!);
        if (filter.startsWith('action')) expect(plan).toContain('audit_entry_action');
        expect(plan, address).toContain('Limit');
        expect(
          plan.filter((name) => /^(server|audit_entry|transfer)_/.test(name)),
          address,
        ).not.toEqual([]);
        if (path !== '/v1/account/usage') expect(plan, address).not.toContain('Sort');
        expect(plan, address).not.toContain('Seq Scan');
      }
    }
  });
});
