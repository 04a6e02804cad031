/** The limits of visitors, and their pages while the database is away. */
import { describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../../setup/database.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { startFaultProxy } from '../../setup/programs/fault-proxy.ts';
import { queriesOf } from '../../setup/queries.ts';
import { visit } from './visits.ts';

const QUOTAS = { RATE_LIMIT_PAGES_PER_MINUTE: '12', RATE_LIMIT_PUBLIC_PER_MINUTE: '4' };
const PROGRAM = { accept: '*/*' };

/** Visits again and again until the service refuses. */
async function refusalAt(url: string, headers?: Record<string, string>) {
  for (let allowed = 0; ; allowed++) {
    const answer = await visit(url, headers);
    if (answer.status !== 200) return { ...answer, allowed };
  }
}

describe('A visitor', () => {
  it('has a limit of pages, which leaves the calls of the API', async () => {
    const { publicUrl } = await startFreehold({ ROLES: 'api', ...QUOTAS });
    const { allowed, status, headers } = await refusalAt(`${publicUrl}/docs`);
    expect(allowed).toBeGreaterThanOrEqual(12);
    expect([status, headers['content-type']]).toEqual([429, 'text/html; charset=utf-8']);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(headers['ratelimit-policy']).toBe('"pages";q=12;w=60');
    expect((await visit(`${publicUrl}/v1/catalog`, PROGRAM)).status).toBe(200);
  });

  it('reads pages after the calls of the API are used up', async () => {
    const { publicUrl } = await startFreehold({ ROLES: 'api', ...QUOTAS });
    expect((await refusalAt(`${publicUrl}/v1/catalog`, PROGRAM)).status).toBe(429);
    expect((await visit(`${publicUrl}/docs`)).status).toBe(200);
  });

  it('costs no query for a page of the documentation, also where processes count calls together', async () => {
    const { db, publicUrl } = await startFreehold({ ROLES: 'api', RATE_LIMIT_STORE: 'postgres' });
    const counts = async (path: string) =>
      (await queriesOf(db, () => visit(publicUrl + path, { authorization: 'Bearer svc_at_wrong' }))).filter(
        ({ text }) => /insert into rate /i.test(text),
      ).length;
    expect(await counts('/v1/catalog')).toBeGreaterThan(0);
    expect(await counts('/docs/api')).toBe(0);
  });

  it('reads the documentation while the database is away, and a page says what is wrong elsewhere', async () => {
    const proxy = await startFaultProxy(await newDatabaseUrl());
    const { publicUrl } = await startFreehold({ ROLES: 'api', DATABASE_URL: proxy.url });
    await proxy.close();
    expect((await visit(`${publicUrl}/docs/quickstart`)).status).toBe(200);
    const { status, headers, text } = await visit(`${publicUrl}/status`);
    expect([status, headers['content-type']]).toEqual([503, 'text/html; charset=utf-8']);
    expect(text).toContain('The service is not available at the moment.');
  });
});
