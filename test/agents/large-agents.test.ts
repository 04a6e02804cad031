/** Large entries of the directory, which strangers read for nothing. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';
import { queriesOf } from '../setup/queries.ts';
import { callTool } from '../setup/tool.ts';

const LIMIT_AGENT_ENTRIES = '70';
const { anonymous, db, newAccount, publicUrl } = await startFreehold({ ROLES: 'api', LIMIT_AGENT_ENTRIES });
const card = (slug: string, more: object = {}) => ({
  slug,
  name: 'Large',
  description: 'Orders servers at night.',
  url: 'https://agent.example.org',
  endpoints: [{ protocol: 'mcp', url: 'https://agent.example.org/mcp' }],
  ...more,
});
const skills = (count: number, description: string) =>
  Array.from({ length: count }, (_, i) => ({ id: `skill-${i}`, name: 's', description, tags: ['night'] }));

describe('An entry', () => {
  it('has at most 8 KiB, and the refusal names its size', async () => {
    const { rest } = await newAccount();
    const publish = (more: object) => rest('POST', '/v1/agents/directory', card('big', more));
    expect((await publish({ skills: skills(6, 'x'.repeat(1000)) })).status).toBe(200);
    for (const large of [
      skills(9, 'x'.repeat(1000)),
      skills(3, '\u{1F600}'.repeat(1000)),
      skills(5, '\\'.repeat(1000)),
      // To look for invisible characters costs time for each emoji, so the size comes first.
      skills(20, `${'\u{1F1E6}'.repeat(900)}\u200b`),
    ]) {
      const { status, body } = await publish({ skills: large });
      expect([status, body.code]).toEqual([422, 'validation_failed']);
      expect(body.errors).toMatchObject([{ field: 'skills', code: 'too_long', limit: 8192 }]);
      expect(body.errors[0].message).toMatch(/^The entry has \d{4,6} bytes .* at most 8192\.$/);
    }
  });
});

const accounts = [await newAccount(), await newAccount()] as const;

describe('A page of the directory', () => {
  it('has at most 20 entries for a stranger, and 50 for an account', async () => {
    const { rest } = await newAccount();
    for (let i = 0; i < 55; i++) await rest('POST', '/v1/agents/directory', card(`page-${i}`));
    const query = '/v1/agents/directory?q=page-&limit=200';
    const { body } = await anonymous('GET', query);
    expect([body.data.length, body.has_more]).toEqual([20, true]);
    expect((await anonymous('GET', `${query}&cursor=${body.next_cursor}`)).body.data).toHaveLength(20);
    const page = (await rest('GET', query)).body;
    expect(page.data).toHaveLength(50);
    expect((await rest('GET', `${query}&cursor=${page.next_cursor}`)).body.data).toHaveLength(5);
  });

  const anonymously = () => anonymous('GET', '/v1/agents/directory?limit=7');
  const head = () => fetch(`${publicUrl}/v1/agents/directory?limit=7`, { method: 'HEAD' });
  const tool = (credential?: string) => callTool(publicUrl, credential, 'search_agents', { limit: 7 });
  it.each([
    ['strangers', [anonymously, head]],
    ['strangers over MCP', [() => tool()]],
    [
      'accounts',
      accounts.map(
        ({ rest }) =>
          () =>
            rest('GET', '/v1/agents/directory?limit=7'),
      ),
    ],
    [
      'accounts over MCP',
      accounts.map(
        ({ accessToken }) =>
          () =>
            tool(accessToken),
      ),
    ],
  ])('is read once in a second for all %s', async (_, callers) => {
    const since = performance.now();
    const queries = await queriesOf(db, async () => {
      for (let i = 0; i < 40; i++) await callers[i % callers.length]!();
    });
    const reads = queries.filter(({ text }) => text.includes('from agent where')).length;
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThanOrEqual(1 + Math.floor((performance.now() - since) / 1_000));
  });

  it('shows a change at once to the caller that made it', async () => {
    const [{ rest }] = accounts;
    const listed = async () => (await rest('GET', '/v1/agents/directory?q=changing')).body.data.length;
    for (const wanted of [true, false, true]) {
      await listed();
      await rest('POST', '/v1/agents/directory', card('changing', { listed: wanted }));
      expect(await listed()).toBe(wanted ? 1 : 0);
    }
  });

  it('shows a change with an idempotency key at once, although others read meanwhile', async () => {
    const [{ rest }] = accounts;
    const listed = async () => (await rest('GET', '/v1/agents/directory?q=keyed')).body.data.length;
    let isOver = false;
    const readers = Array.from({ length: 4 }, async () => {
      while (!isOver) await listed();
    });
    try {
      for (let n = 0; n < 20; n++) {
        const change = card('keyed', { listed: n % 2 === 0 });
        await rest('POST', '/v1/agents/directory', change, { 'idempotency-key': `keyed-${n}` });
        expect(await listed()).toBe(n % 2 === 0 ? 1 : 0);
      }
    } finally {
      isOver = true;
    }
    await Promise.all(readers);
  });

  it('is shorter when entries of an older version are large, and shows each of them', async () => {
    const { rest } = await newAccount();
    for (let i = 0; i < 12; i++) await rest('POST', '/v1/agents/directory', card(`older-${i}`));
    await db.query(`update agent set skills = $1 where slug like 'older-%'`, [
      JSON.stringify(skills(20, '\\'.repeat(2000))),
    ]);
    const slugs: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await rest('GET', `/v1/agents/directory?q=older-&limit=200${cursor}`);
      expect(JSON.stringify(body).length).toBeLessThan(160 * 1024);
      slugs.push(...body.data.map(({ slug }: { slug: string }) => slug));
      if (!body.has_more) break;
      cursor = `&cursor=${body.next_cursor}`;
    }
    expect(slugs).toEqual(Array.from({ length: 12 }, (_, i) => `older-${11 - i}`));
  });
});
