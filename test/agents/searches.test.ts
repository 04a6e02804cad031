/** Searches of the directory, whose cost grows with its entries. */
import { expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { restClient } from '../setup/spawn.ts';

const { anonymous, db, newAccount, publicUrl } = await startFreehold({
  ROLES: 'api',
  TRUSTED_PROXY_CIDRS: '127.0.0.1',
});

const running = async () =>
  (
    await db.query<{ running: number }>(
      `select count(*)::int as running from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%search_agents%' and datname = current_database()`,
    )
  )[0]!.running;

it('Two reads of the directory run at once, and other reads go on', async () => {
  const [customer, ...accounts] = await Promise.all(Array.from({ length: 17 }, newAccount));
  let searches: Promise<{ status: number }>[] = [];
  await db.transaction(async (tx) => {
    await tx.query('lock table agent in access exclusive mode');
    searches = accounts.map(({ accessToken }, i) =>
      restClient(publicUrl, accessToken)('GET', `/v1/agents/directory?q=a${i}`, undefined, {
        'x-forwarded-for': `198.51.${i}.7`,
      }),
    );
    await eventually(async () => (await running()) === 2, 10);
    for (let i = 0; i < 5; i++) {
      expect((await customer!.rest('GET', '/v1/servers')).status).toBe(200);
      expect((await anonymous('GET', '/v1/catalog')).status).toBe(200);
    }
    expect(await running()).toBe(2);
  });
  expect((await Promise.all(searches)).map(({ status }) => status)).toEqual(accounts.map(() => 200));
});

it('A read passes over the entries of suspended accounts', async () => {
  const [suspended, other] = [await newAccount(), await newAccount()];
  const entry = (slug: string) => ({ slug, name: 'Night', description: 'Sleeps.', url: 'https://agent.example.org' });
  const endpoints = [{ protocol: 'mcp', url: 'https://agent.example.org/mcp' }];
  expect((await other.rest('POST', '/v1/agents/directory', { ...entry('old'), endpoints })).status).toBe(200);
  for (const slug of ['new', 'newer'])
    await suspended.rest('POST', '/v1/agents/directory', { ...entry(slug), endpoints });
  await db.query('update account set suspended_at = now() where id = $1', [suspended.id]);
  for (const query of ['q=night&limit=1', 'limit=1', 'protocol=mcp']) {
    const { data } = (await anonymous('GET', `/v1/agents/directory?${query}`)).body;
    expect(data.map(({ slug }: { slug: string }) => slug)).toEqual(['old']);
  }
});
