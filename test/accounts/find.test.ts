/** An operator finds accounts by the words of a customer, also by a part of an email. */
import { beforeAll, describe, expect, it } from 'vitest';
import { FIND_ACCOUNTS } from '../../entities/accounts/find.ts';
import { newId, newOrderNumber } from '../../entities/ids.ts';
import { LIST_SERVERS } from '../../entities/servers/find.ts';
import { asSuperuser } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';

const { anonymous, db, newAccount, operator } = await startFreehold();

const register = async (email: string): Promise<string> =>
  (await anonymous('POST', '/v1/auth/register', { email, password: 'a long password of a test' })).body.account.id;
/** Orders a server, and returns the order number. */
async function order({ fund, rest }: Awaited<ReturnType<typeof newAccount>>, hostname: string): Promise<string> {
  await fund(30);
  return (await rest('POST', '/v1/servers', { service_code: 'vps-1', hostname })).body.order_number;
}
const idsBy = async (search: string): Promise<string[]> => {
  const { data } = await operator('query ($search: Line!) { accounts(search: $search) { id } }', { search });
  return data.accounts.map(({ id }: { id: string }) => id);
};

describe('A search for accounts', () => {
  it('finds those whose email begins with at least three letters, in any case, the newest first', async () => {
    const ids = [await register('noor_a@mail.example'), await register('noor_b@mail.example')];
    await register('noorxa@mail.example');
    expect(await idsBy('Noor_')).toEqual(ids.toReversed());
    expect(await idsBy('noo')).toHaveLength(3);
    expect(await idsBy('no')).toEqual([]);
    expect(await idsBy('no%')).toEqual([]);
    expect(await idsBy('oor_a')).toEqual([]);
  });

  it('finds those of a domain by its @', async () => {
    const id = await register('ada@Lovelace.example');
    await register('ada@mail.lovelace.example');
    expect(await idsBy('@lovelace.EXAMPLE')).toEqual([id]);
    expect(await idsBy('@lovelace')).toEqual([]);
  });

  it('finds the customer of a host name, also after the end of the server', async () => {
    const account = await newAccount();
    const number = await order(account, 'Mill.example.org');
    expect(await idsBy('mill.example.ORG')).toEqual([account.id]);
    expect(await idsBy('mill.example')).toEqual([]);
    await account.rest('DELETE', `/v1/servers/${number}`);
    expect(await idsBy('mill.example.org')).toEqual([account.id]);
  });

  it('names the accounts that the text fits exactly before those that it begins', async () => {
    const account = await newAccount();
    await order(account, 'forge');
    const later = await register('forge@mail.example');
    expect(await idsBy('forge')).toEqual([account.id, later]);
    expect(await idsBy('forge@mail.example')).toEqual([later]);
    const longest = await register('forge@mail.example.org');
    expect(await idsBy('forge@mail.example')).toEqual([later, longest]);
  });
});

describe('With many customers, a search', () => {
  beforeAll(async () => {
    const ids = (prefix: 'acct' | 'srv') => Array.from({ length: 5_000 }, () => newId(prefix));
    await asSuperuser(
      db,
      `insert into account (id, kind, email) select id, 'PERSON', md5(id) || '@' || n || '.example'
        from unnest($1::text[]) with ordinality as given(id, n)`,
      [ids('acct')],
    );
    await asSuperuser(
      db,
      `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os,
          price_month_micros, setup_fee_micros)
        select id, id, number, 'VPS', 'RUNNING', 'web-' || number, 'vps-1', 'zrh', 'x', 1, 0
        from unnest($1::text[], $2::text[]) as given(id, number)`,
      [ids('srv'), Array.from({ length: 5_000 }, () => newOrderNumber('SRV'))],
    );
    await asSuperuser(db, 'analyze');
  });

  /** The plan of a statement. Of small tables, PostgreSQL would otherwise read all rows. */
  const planOf = ({ text }: { text: string }, parameters: unknown[]): Promise<string> =>
    db.transaction(async (tx) => {
      await tx.query('set local enable_seqscan = off');
      return JSON.stringify(await tx.query(`explain (format json) ${text}`, parameters));
    });

  it.each([
    ['abcdef', null],
    ['@7.example', null],
    ['192.0.2.7', '192.0.2.7'],
  ])('for accounts by %s reads no table to its end', async (search, address) => {
    const plan = await planOf(FIND_ACCOUNTS, [search, address, 50, null]);
    expect(plan).not.toContain('Seq Scan');
    for (const index of ['account_email_beginning', 'account_email_domain', 'server_hostname'])
      expect(plan).toContain(`"${index}"`);
  });

  it('for servers by a host name looks into its index', async () => {
    const filters = [50, null, null, null, null, 'web-1', [], [], null, null];
    expect(await planOf(LIST_SERVERS, filters)).toContain('"server_hostname"');
  });
});
