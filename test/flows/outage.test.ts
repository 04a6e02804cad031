import { expect, inject, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { administer } from '../setup/postgres.ts';

it('The service answers 503 without its database, and continues when the database is back', async () => {
  const { anonymous, db, newAccount, internalUrl } = await startFreehold();
  const account = await newAccount();
  const [{ name }] = (await db.query<{ name: string }>('select current_database() as name')) as [{ name: string }];
  const url = inject('postgresUrl');
  await administer(url, `alter database ${name} allow_connections false`);
  await administer(url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  const { status, body, headers } = await eventually(async () => {
    const answer = await anonymous('GET', '/v1/catalog/vps');
    return answer.body.code === 'unavailable' && answer;
  });
  expect([status, body.retryable, headers.get('retry-after')]).toEqual([503, true, '1']);
  expect(await anonymous('GET', '/v1/transparency/status')).toMatchObject({
    status: 503,
    body: { code: 'unavailable' },
  });
  expect((await fetch(`${internalUrl}/healthz`)).status).toBe(200);
  expect((await fetch(`${internalUrl}/readyz`)).status).toBe(503);
  await administer(url, `alter database ${name} allow_connections true`);
  await eventually(async () => (await anonymous('GET', '/v1/catalog/vps')).status === 200);
  await account.fund(30);
  expect(await account.balance()).toBe(30);
});
