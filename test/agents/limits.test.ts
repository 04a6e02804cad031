/** The changes of an account in the directory of agents, of which webhooks and the audit log keep each. */
import { describe, expect, it } from 'vitest';
import { asSuperuser } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';

const { db, newAccount } = await startFreehold({ ROLES: 'api' });
const card = (slug: string, more: object = {}) => ({
  slug,
  ...{ name: `Agent ${slug}`, description: 'Orders servers at night.', url: 'https://agent.example.org' },
  endpoints: [{ protocol: 'mcp', url: 'https://agent.example.org/mcp', protocol_version: '2026-07-28' }],
  skills: [{ id: 'ordering', name: 'Ordering', description: 'Orders.', tags: ['Servers', 'night'] }],
  ...more,
});

describe('The directory of agents', () => {
  it('takes 60 changes of an account in an hour, even at once, and says when it takes the next', async () => {
    const [{ rest, id }, neighbour] = [await newAccount(), await newAccount()];
    const publish = (client = rest, slug = 'often') => client('POST', '/v1/agents/directory', card(slug));
    const answers = [];
    for (let i = 0; i < 9; i++) answers.push(...(await Promise.all(Array.from({ length: 7 }, () => publish()))));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(60);
    const { status, body } = await publish();
    expect([status, body.code, body.retryable]).toEqual([429, 'rate_limited', true]);
    expect(body.detail).toMatch(/60 changes/);
    expect(body.retry_after).toBeGreaterThan(3500);
    expect(body.retry_after).toBeLessThanOrEqual(3600);
    expect((await publish(neighbour.rest, 'seldom')).status).toBe(200);
    await asSuperuser(
      db,
      `update audit_entry set created_at = created_at - interval '1 hour'
        where id = (select id from audit_entry where account_id = $1 and action = 'agent.updated' order by id limit 1)`,
      [id],
    );
    expect((await publish()).status).toBe(200);
    expect((await publish()).status).toBe(429);
  });

  it('is left by a listed entry although a thief used up the changes of the hour', async () => {
    const { rest } = await newAccount();
    const publish = (more: object = {}) => rest('POST', '/v1/agents/directory', card('stolen', more));
    for (let status = 200; status === 200; ) status = (await publish({ name: 'Pay here' })).status;
    const { status, body } = await publish({ listed: false });
    expect([status, body.status]).toEqual([200, 'unlisted']);
    const { data } = (await rest('GET', '/v1/agents/directory')).body;
    expect(data.map(({ slug }: { slug: string }) => slug)).not.toContain('stolen');
    for (const listed of [false, true]) expect((await publish({ listed })).status).toBe(429);
  });
});
