/** The writing of requests into the audit log, after their answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Database } from '../../entities/database/database.ts';
import { RequestAudit } from '../../resolvers/accounts/request-audit.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { db, newAccount } = await startFreehold();

describe('Writing requests into the audit log', () => {
  const caller: Parameters<RequestAudit['add']>[0] = {
    requestId: 'req_test',
    viewer: {
      ...{ accountId: 'acct_test', credentialId: 'key', name: null, scopes: new Set(), expiresAt: null },
      kind: 'api_key',
    },
  };
  const written = () => db.query(`select path from audit_entry where account_id = 'acct_test' order by id`);
  /** A log over a database that is away, until it is back. */
  const duringOutage = () => {
    let away = true;
    const query = ((sql: string, parameters: unknown[]) =>
      away ? Promise.reject(new Error('The database is away.')) : db.query(sql, parameters)) as Database['query'];
    const end = () => {
      away = false;
    };
    return { audit: new RequestAudit({ query } as Database), end };
  };

  it('is retried after an outage of the database, and fails no request', async () => {
    const { audit, end } = duringOutage();
    for (const path of ['/one', '/two']) audit.add(caller, { method: 'POST', path, status: 200 });
    await audit.flush();
    end();
    audit.add(caller, { method: 'POST', path: '/three', status: 200 });
    await audit.flush();
    expect(await written()).toEqual(['/one', '/two', '/three'].map((path) => ({ path })));
  });

  it('keeps the requests of an account while another sends thousands during an outage', async () => {
    const { audit, end } = duringOutage();
    const of = (accountId: string) => ({ ...caller, viewer: { ...caller.viewer!, accountId } });
    audit.add(of('acct_quiet'), { method: 'POST', path: '/quiet', status: 200 });
    for (let i = 0; i < 10_500; i++) audit.add(of('acct_flood'), { method: 'POST', path: '/flood', status: 200 });
    end();
    await audit.flush();
    const entries = await db.query(
      `select account_id, count(*)::int as entries from audit_entry
        where account_id in ('acct_quiet', 'acct_flood') group by 1 order by 1`,
    );
    expect(entries).toEqual([
      { accountId: 'acct_flood', entries: 9_999 },
      { accountId: 'acct_quiet', entries: 1 },
    ]);
  });

  it('makes one entry a minute of the same refusals, with a count, and none of different ones', async () => {
    const account = await newAccount();
    // biome-ignore lint/suspicious/noExplicitAny: the test checks the type of the members that it reads
    const entries = async (count: number): Promise<any> =>
      eventually(async () => {
        const { data } = (await account.rest('GET', '/v1/account/audit-log?action=api.request')).body;
        // biome-ignore lint/suspicious/noExplicitAny: as above
        return data.length >= count && data.map(({ path, status, count }: any) => [path, status, count]).sort();
      });
    const own = { ...caller, viewer: { ...caller.viewer!, accountId: account.id } };
    const audit = new RequestAudit(db);
    const refuse = (status: number, path = '/x') => audit.add(own, { method: 'POST', path, status });
    for (let i = 0; i < 5; i++) refuse(404);
    await audit.flush();
    for (let i = 0; i < 7; i++) refuse(404);
    refuse(403);
    refuse(404, '/y');
    for (let i = 0; i < 2; i++) refuse(200, '/z');
    const first = [
      ['/x', 403, 1],
      ['/x', 404, 5],
      ['/y', 404, 1],
      ['/z', 200, undefined],
      ['/z', 200, undefined],
    ];
    expect(await entries(5)).toEqual(first);
    await audit.flush();
    expect(await entries(6)).toEqual([...first, ['/x', 404, 7]].sort());
  });

  it('gives repeated refusals the time of the first of them, and not that of their writing', async () => {
    const audit = new RequestAudit(db);
    const refuse = () => audit.add(caller, { method: 'POST', path: '/dated', status: 404 });
    refuse();
    await audit.flush();
    refuse();
    await sleep(300);
    const [{ now }] = (await db.query<{ now: Date }>('select now()')) as [{ now: Date }];
    await audit.flush();
    const entries = await db.query<{ createdAt: Date }>(
      `select created_at from audit_entry where path = '/dated' order by created_at`,
    );
    expect(entries).toHaveLength(2);
    expect(entries.at(-1)!.createdAt.getTime()).toBeLessThan(now.getTime() - 200);
  });

  it('leaves out requests that the rate limit refused', async () => {
    const before = await written();
    const audit = new RequestAudit(db);
    audit.add(caller, { method: 'POST', path: '/many', status: 429 });
    await audit.flush();
    expect(await written()).toEqual(before);
  });
});
