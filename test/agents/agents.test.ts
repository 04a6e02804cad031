import { createHash, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { asSuperuser } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';

const { anonymous, db, newAccount } = await startFreehold({ ROLES: 'api', LIMIT_AGENT_ENTRIES: '3' });
const card = (slug: string, more: object = {}) => ({
  slug,
  name: `Agent ${slug}`,
  description: 'Orders servers at night.',
  url: 'https://agent.example.org',
  endpoints: [{ protocol: 'mcp', url: 'https://agent.example.org/mcp', protocol_version: '2026-07-28' }],
  skills: [{ id: 'ordering', name: 'Ordering', description: 'Orders.', tags: ['Servers', 'night'] }],
  ...more,
});
const reader = await newAccount();
/** Searches with a credential. */
const search = async (query = '') => (await reader.rest('GET', `/v1/agents/directory${query}`)).body;
const slugs = async (query = '') => (await search(query)).data.map(({ slug }: { slug: string }) => slug);

describe('The directory of agents', () => {
  it('takes an entry and shows it to all callers, without its owner', async () => {
    const { rest, id, email } = await newAccount();
    const { status, body } = await rest('POST', '/v1/agents/directory', card('night-owl'));
    expect(status).toBe(200);
    expect(body).toMatchObject({
      slug: 'night-owl',
      status: 'listed',
      verified: false,
      x402: false,
      public_key: null,
      endpoints: [{ protocol: 'mcp' }],
    });
    const found = (await anonymous('GET', '/v1/agents/directory?q=NIGHT-o')).body;
    expect(found.data).toEqual([body]);
    expect(JSON.stringify(found)).not.toContain(id);
    expect(JSON.stringify(found)).not.toContain(email);
  });

  it('replaces the entry of the same slug, and lists or unlists it', async () => {
    const { rest } = await newAccount();
    const first = (await rest('POST', '/v1/agents/directory', card('upsert'))).body;
    const second = (await rest('POST', '/v1/agents/directory', card('upsert', { name: 'Other', listed: false }))).body;
    expect(second).toMatchObject({ id: first.id, name: 'Other', status: 'unlisted', created_at: first.created_at });
    expect(await slugs('?q=upsert')).toEqual([]);
    await rest('POST', '/v1/agents/directory', card('upsert', { listed: true }));
    expect(await slugs('?q=upsert')).toEqual(['upsert']);
  });

  it('keeps an entry hidden that the operator has hidden', async () => {
    const { rest } = await newAccount();
    await rest('POST', '/v1/agents/directory', card('hidden-one'));
    await db.query(`update agent set status = 'HIDDEN' where slug = 'hidden-one'`);
    expect((await rest('POST', '/v1/agents/directory', card('hidden-one'))).body.status).toBe('hidden');
    expect(await slugs('?q=hidden-one')).toEqual([]);
  });

  it('refuses a slug of another account, even when two accounts publish it at once', async () => {
    const accounts = await Promise.all([newAccount(), newAccount()]);
    const answers = await Promise.all(
      accounts.map(({ rest }) => rest('POST', '/v1/agents/directory', card('contested'))),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
    expect(answers.find(({ status }) => status === 422)!.body).toMatchObject({
      code: 'validation_failed',
      errors: [{ field: 'slug' }],
    });
  });

  it('limits the entries of an account, even for requests at once', async () => {
    const { rest } = await newAccount();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => rest('POST', '/v1/agents/directory', card(`many-${i}`))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(answers.filter(({ body }) => body.code === 'agent_limit_reached')).toHaveLength(5);
  });

  it('gives the place of an unlisted entry to a new one at the limit', async () => {
    const { rest } = await newAccount();
    const publish = (slug: string, more = {}) => rest('POST', '/v1/agents/directory', { ...card(slug), ...more });
    for (const slug of ['place-a', 'place-b', 'place-c']) expect((await publish(slug)).status).toBe(200);
    const refused = (await publish('place-d')).body;
    expect([refused.code, refused.detail]).toEqual(['agent_limit_reached', expect.stringContaining('listed false')]);
    expect((await publish('place-b', { listed: false })).body.status).toBe('unlisted');
    expect((await publish('place-d')).status).toBe(200);
    expect((await publish('place-b')).body.code).toBe('agent_limit_reached');
    expect((await publish('place-a')).status).toBe(200);
  });

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

  it('takes an Ed25519 key as JWK or base64, and names its thumbprint', async () => {
    const { rest } = await newAccount();
    const jwk = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
    const thumbprint = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${jwk.x}"}`).digest('base64url');
    const base64 = Buffer.from(jwk.x!, 'base64url').toString('base64');
    for (const public_key of [JSON.stringify(jwk), base64]) {
      const { body } = await rest('POST', '/v1/agents/directory', card('with-key', { public_key }));
      expect(body).toMatchObject({ public_key: base64, public_key_thumbprint: thumbprint });
    }
    for (const public_key of [
      'x'.repeat(43),
      '{"kty":"RSA","n":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}',
      `${'A'.repeat(60)}=`,
    ]) {
      const { status, body } = await rest('POST', '/v1/agents/directory', card('with-key', { public_key }));
      if (status !== 200) expect(body.errors[0].field).toBe('public_key');
      else expect(body.public_key_thumbprint).toHaveLength(43);
    }
  });

  it('checks a key against the card, again after a change of the key or the URL', async () => {
    const { rest } = await newAccount();
    const newKey = () => generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }).x!;
    const [first, second] = [newKey(), newKey()];
    const publish = async (more: object) => (await rest('POST', '/v1/agents/directory', card('checked', more))).body;
    const { id } = await publish({});
    const checks = async () =>
      (await db.query<{ signals: number }>('select signals from task where subject = $1', [id])).map(
        (row) => row.signals,
      );
    expect(await checks()).toEqual([]);
    await publish({ public_key: first });
    expect(await checks()).toEqual([0]);
    await db.query('update agent set verified = true where id = $1', [id]);
    expect(await publish({ public_key: first, name: 'Other' })).toMatchObject({ verified: true, name: 'Other' });
    expect(await slugs('?verified=true')).toEqual(['checked']);
    expect(await checks()).toEqual([0]);
    for (const [signals, change] of [
      [1, { public_key: second }],
      [2, { public_key: second, url: 'https://other.example.org' }],
      [3, {}],
    ] as const) {
      expect((await publish(change)).verified).toBe(false);
      expect(await checks()).toEqual([signals]);
      await db.query('update agent set verified = true where id = $1', [id]);
    }
    await publish({ listed: false });
  });

  it('searches by skill, tag, protocol and verification, and returns pages', async () => {
    const { rest } = await newAccount();
    await rest(
      'POST',
      '/v1/agents/directory',
      card('finder-a', { skills: [{ id: 'dns', name: 'DNS', description: 'x', tags: ['Names'] }] }),
    );
    await rest(
      'POST',
      '/v1/agents/directory',
      card('finder-b', { endpoints: [{ protocol: 'a2a', url: 'https://a.example.org' }] }),
    );
    expect(await slugs('?skill=dns')).toEqual(['finder-a']);
    expect(await slugs('?skill=names')).toEqual(['finder-a']);
    expect(await slugs('?protocol=a2a')).toEqual(['finder-b']);
    expect(await slugs('?verified=true')).toEqual([]);
    expect(await slugs('?q=%25')).toEqual([]);
    const first = await search('?q=finder&limit=1');
    expect(first).toMatchObject({ has_more: true, data: [{ slug: 'finder-b' }] });
    expect(await slugs(`?q=finder&limit=1&cursor=${first.next_cursor}`)).toEqual(['finder-a']);
  });

  it.each([
    [{ slug: 'No' }, 'slug'],
    [{ url: 'http://insecure.example.org' }, 'url'],
    [{ url: 'https://user:password@example.org' }, 'url'],
    [{ url: 'javascript:alert(1)' }, 'url'],
    [{ endpoints: [] }, 'endpoints'],
    [{ endpoints: Array.from({ length: 11 }, () => ({ protocol: 'mcp', url: 'https://a.example.org' })) }, 'endpoints'],
    [{ endpoints: [{ protocol: 'smtp', url: 'https://a.example.org' }] }, 'endpoints.0.protocol'],
    [{ name: 'x'.repeat(81) }, 'name'],
    [{ description: 'x'.repeat(1001) }, 'description'],
  ])('refuses %j', async (wrong, field) => {
    const { rest } = await newAccount();
    const { status, body } = await rest('POST', '/v1/agents/directory', card('wrong', wrong));
    expect([status, body.code]).toEqual([422, 'validation_failed']);
    expect(body.errors[0].field).toBe(field);
  });
});
