import { createHash, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { anonymous, db, newAccount, operator } = await startFreehold({ ROLES: 'api', LIMIT_AGENT_ENTRIES: '3' });
const card = (slug: string, more: object = {}) => ({
  slug,
  name: `Agent ${slug}`,
  description: 'Orders servers at night.',
  url: 'https://agent.example.org',
  endpoints: [{ protocol: 'mcp', url: 'https://agent.example.org/mcp', protocol_version: '2026-07-28' }],
  skills: [{ id: 'ordering', name: 'Ordering', description: 'Orders.', tags: ['Servers', 'night'] }],
  ...more,
});
const HIDE = 'mutation ($id: ID!) { hideAgent(id: $id, reason: "It poses as another.") { status } }';
const SHOW = 'mutation ($id: ID!) { showAgent(id: $id) { status } }';
const SUSPEND = 'mutation ($id: ID!) { suspendAccount(id: $id, reason: "Spam was sent.") { id } }';
const RESUME = 'mutation ($id: ID!) { resumeAccount(id: $id) { id } }';
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

  it('lacks an entry that the operator hides, until the operator shows it again', async () => {
    const { rest, graphql } = await newAccount();
    const publish = async (more = {}) => (await rest('POST', '/v1/agents/directory', card('hidden-one', more))).body;
    const { id } = await publish();
    expect((await graphql(HIDE, { id })).errors[0].extensions.code).toBe('insufficient_scope');
    expect((await graphql(SHOW, { id })).errors[0].extensions.code).toBe('insufficient_scope');
    for (let i = 0; i < 2; i++) expect((await operator(HIDE, { id })).data.hideAgent).toEqual({ status: 'HIDDEN' });
    expect(await slugs('?q=hidden-one')).toEqual([]);
    const hidden = async () => (await operator('{ hiddenAgents { data { slug } } }')).data.hiddenAgents.data;
    expect(await hidden()).toEqual([{ slug: 'hidden-one' }]);
    for (const listed of [true, false]) expect((await publish({ listed })).status).toBe('hidden');
    expect((await operator(SHOW, { id })).data.showAgent).toEqual({ status: 'LISTED' });
    expect(await hidden()).toEqual([]);
    expect(await slugs('?q=hidden-one&limit=9')).toEqual(['hidden-one']);
    const { body } = await rest('GET', '/v1/account/audit-log?action=agent.updated');
    const acts = body.data.filter(({ actor }: { actor: { type: string } }) => actor.type === 'operator');
    expect(acts).toMatchObject([{ resource: { type: 'agent', id } }, { resource: { type: 'agent', id } }]);
    const told = `select data from event where subject = $1 and data ? 'status' order by id`;
    expect(await db.query(told, [id])).toEqual([
      { data: { status: 'HIDDEN', reason: 'It poses as another.' } },
      { data: { status: 'LISTED' } },
    ]);
  });

  it('has nothing to hide or show where it lists and hides nothing', async () => {
    const { rest } = await newAccount();
    const { id } = (await rest('POST', '/v1/agents/directory', card('absent', { listed: false }))).body;
    for (const unknown of [id, 'agt_00000000000000000000000000', 'x'])
      for (const act of [HIDE, SHOW])
        expect((await operator(act, { id: unknown })).errors[0].extensions.code).toBe('not_found');
    expect((await rest('POST', '/v1/agents/directory', card('absent', { listed: false }))).body.status).toBe(
      'unlisted',
    );
  });

  it('lacks the entries of a suspended account, in lists and in searches', async () => {
    const { rest, id } = await newAccount();
    await rest('POST', '/v1/agents/directory', card('barred'));
    const found = async (limit: number) => [
      (await slugs(`?limit=${limit}`)).includes('barred'),
      ...(await slugs(`?q=barred&limit=${limit}`)),
    ];
    expect(await found(50)).toEqual([true, 'barred']);
    await operator(SUSPEND, { id });
    expect(await found(49)).toEqual([false]);
    await operator(RESUME, { id });
    expect(await found(48)).toEqual([true, 'barred']);
  });

  it('lets a suspended account unlist its entry, and do nothing else', async () => {
    const { rest, id } = await newAccount();
    const publish = (slug: string, more = {}) => rest('POST', '/v1/agents/directory', card(slug, more));
    await publish('leaving');
    await publish('kept-hidden');
    await db.query(`update agent set status = 'HIDDEN' where slug = 'kept-hidden'`);
    await operator(SUSPEND, { id });
    for (const refused of [publish('leaving'), publish('arriving', { listed: false })])
      expect((await refused).body.code).toBe('account_suspended');
    for (let i = 0; i < 2; i++)
      expect(
        (await publish('leaving', { listed: false, name: 'Other', public_key: 'A'.repeat(43) })).body,
      ).toMatchObject({
        status: 'unlisted',
        name: 'Agent leaving',
        public_key: null,
      });
    expect((await publish('kept-hidden', { listed: false })).body.status).toBe('hidden');
    await operator(RESUME, { id });
    expect(await slugs('?q=leaving')).toEqual([]);
    const { body } = await rest('GET', '/v1/account/audit-log?action=agent.updated');
    expect(body.data).toHaveLength(3);
  });

  it.each([
    ['name', 'U+001B', { name: 'Acme\u001b[2J' }],
    ['name', 'U+202E', { name: 'Acme\u202etxt' }],
    ['name', 'U+200B', { name: 'Ac\u200bme' }],
    ['description', 'U+000D', { description: 'Weather.\r\nOwner: Acme' }],
    ['description', 'U+E0049', { description: 'Weather.\u{e0049}' }],
    ['version', 'U+2028', { version: '1\u2028' }],
    ['provider_name', 'U+2066', { provider_name: '\u2066Acme' }],
    [
      'endpoints.0.protocol_version',
      'U+0009',
      { endpoints: [{ protocol: 'mcp', url: 'https://a.example.org', protocol_version: '\t' }] },
    ],
    ['skills.0.tags.1', 'U+00AD', { skills: [{ id: 'dns', name: 'D', description: 'x', tags: ['a', 'b\u00ad'] }] }],
  ])('refuses in %s the character %s, because it deceives readers', async (field, character, more) => {
    const { rest } = await newAccount();
    const { status, body } = await rest('POST', '/v1/agents/directory', card('unseen', more));
    expect([status, body.code]).toEqual([422, 'validation_failed']);
    expect(body.errors[0]).toMatchObject({ field, message: expect.stringContaining(character) });
  });

  it('takes names of many languages and emoji, and descriptions of many lines', async () => {
    const { rest } = await newAccount();
    const description = 'Weather.\nFor all.';
    expect((await rest('POST', '/v1/agents/directory', card('lines', { description }))).body.description).toBe(
      description,
    );
    for (const name of ['Wetter für Köln', '天気', 'الطقس', 'ד"ר מזג', '☀️ 👩\u200d💻 \u{1f3f4}'])
      expect((await rest('POST', '/v1/agents/directory', card('languages', { name }))).body.name).toBe(name);
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
