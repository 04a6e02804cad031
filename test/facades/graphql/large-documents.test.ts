/** The weight of documents, and the operations of an account at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import { describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { queriesOf } from '../../setup/queries.ts';

/** It counts in memory. Counts in the database take turns with the reads of their account, and would wait for them. */
const freehold = await startFreehold({ ROLES: 'api', RATE_LIMIT_STORE: 'memory' });
const limited = await startFreehold({ ROLES: 'api', RATE_LIMIT_KEY_PER_MINUTE: '120' });
const CALLS = 120;
const ROOTS = 20;
const many = (count: number, field: string) =>
  `{ ${Array.from({ length: count }, (_, i) => `a${i}: ${field}`).join(' ')} }`;

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of an answer
  data?: any;
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of an error
  errors?: any;
}
type Send = (query: string, variables?: Record<string, unknown>) => Promise<Answer>;

/** Sends operations over one WebSocket. */
function overSocket(url: string, credential: string): Send {
  const client = createClient({
    url: url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${credential}` },
  });
  return async (query, variables = {}) => {
    try {
      for await (const answer of client.iterate({ query, variables })) return answer as Answer;
    } catch (errors) {
      return { errors: Array.isArray(errors) ? errors : [errors] };
    }
    return {};
  };
}
const codeOf = ({ errors }: Answer): string | undefined => errors?.[0].extensions.code;

describe.each(['HTTP', 'WebSocket'] as const)('A document over %s', (transport) => {
  const clientOf = async ({ newAccount, graphqlUrl }: typeof freehold): Promise<Send> => {
    const account = await newAccount();
    return transport === 'HTTP' ? account.graphql : overSocket(graphqlUrl, account.accessToken);
  };

  it('counts as many calls as it has root fields', async () => {
    const send = await clientOf(limited);
    for (let sent = 0; sent < CALLS / ROOTS; sent++)
      expect((await send(many(ROOTS, 'account { id }'))).errors).toBeUndefined();
    expect(codeOf(await send('{ account { id } }'))).toBe('rate_limited');
  });

  it.each([
    ['by literals', many(3, 'agents(limit: 134) { data { id } }'), {}],
    [
      'by a variable',
      `query ($limit: PageLimit!) ${many(3, 'auditLog(limit: $limit) { data { id } }')}`,
      { limit: 134 },
    ],
    ['by the default of a variable', `query ($n: PageLimit! = 200) ${many(3, 'agents(limit: $n) { hasMore }')}`, {}],
    ['by defaults', many(9, 'agents { data { id } }'), {}],
    [
      'in fragments',
      `{ ...all } fragment all on Query ${many(9, '... { agents { data { id } } }').replaceAll(/a\d: \.\.\. \{ agents/g, (alias) => `... { ${alias.slice(0, 2)}: agents`)}`,
      {},
    ],
  ])('asks for at most 400 rows of its pages, %s', async (_, query, variables) => {
    const refused = await (await clientOf(freehold))(query, variables);
    expect([codeOf(refused), refused.errors[0].message]).toEqual([
      'BAD_USER_INPUT',
      expect.stringMatching(/asks for \d+ rows, and may for 400/),
    ]);
  });

  const CREATE = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { plaintext } }';
  const members = (count: number) => Array.from({ length: count }, (_, n) => `n${n}`);
  /** GraphQL makes an error for each member, and repeats the whole value in it. */
  const isShort = ({ errors }: Answer) => errors.length <= 6 && JSON.stringify(errors).length < 8_000;

  it('has one error about its variables, which repeats no long value', async () => {
    const wrong = Object.fromEntries(members(2_000).map((name) => [name, 1]));
    const answer = await (await clientOf(freehold))(CREATE, { input: { name: '"'.repeat(20_000), ...wrong } });
    expect([answer.errors.length, isShort(answer), codeOf(answer)]).toEqual([1, true, 'BAD_USER_INPUT']);
  });

  it('has few errors about its literals, which repeat no long value', async () => {
    const wrong = members(100).map((name) => `${name}: 1`);
    const input = `{ name: "${'x'.repeat(20_000)}", ${wrong.join(', ')} }`;
    const answer = await (await clientOf(freehold))(`mutation { createApiKey(input: ${input}) { plaintext } }`);
    expect([isShort(answer), codeOf(answer)]).toEqual([true, 'GRAPHQL_VALIDATION_FAILED']);
  });

  it('has few fragments in one selection, because validation compares them in pairs', async () => {
    const names = members(100);
    const fragments = names.map((name) => `fragment ${name} on Account { id }`).join(' ');
    const query = `{ account { ${names.map((name) => `...${name}`).join(' ')} } } ${fragments}`;
    const { errors } = await (await clientOf(freehold))(query);
    expect(errors[0].message).toBe(
      'The document is too large: it repeats a field or fragments 100 times, and may 20 times.',
    );
  });

  it('may ask for 400 rows, and for each field of a page of 200', async () => {
    const send = await clientOf(freehold);
    expect((await send(many(8, 'agents { data { id } }'))).errors).toBeUndefined();
    const fields = 'slug name url status endpoints { protocol url } skills { id name description tags }';
    expect((await send(`{ agents(limit: 200) { data { ${fields} } } }`)).errors).toBeUndefined();
  });

  it('counts the type names of its rows among its values', async () => {
    const send = await clientOf(freehold);
    const names = Array.from({ length: 450 }, (_, i) => `n${i}: __typename`).join(' ');
    expect(codeOf(await send(`{ agents(limit: 200) { data { ${names} } } }`))).toBe('BAD_USER_INPUT');
  });

  it('has the rows of a fragment once in a selection, as in its answer', async () => {
    const send = await clientOf(freehold);
    const spreads = '...Page '.repeat(5);
    const fragment = 'fragment Page on Query { auditLog(limit: 200) { data { id } } }';
    expect((await send(`{ ${spreads} } ${fragment}`)).errors).toBeUndefined();
  });

  it('asks for at most 40,000 values, where aliases repeat the fields of its rows', async () => {
    const aliases = Array.from({ length: 40 }, (_, i) => `x${i}: id`).join(' ');
    const refused = await (await clientOf(freehold))(`{ agents(limit: 200) { data { skills { ${aliases} } } } }`);
    expect([codeOf(refused), refused.errors[0].message]).toEqual([
      'BAD_USER_INPUT',
      expect.stringMatching(/values, and may for 40000/),
    ]);
  });
});

it('A document of the operator has neither limit', async () => {
  expect((await limited.operator(many(ROOTS, 'agents(limit: 200) { data { id } }'))).errors).toBeUndefined();
});

describe('The operations of an account', () => {
  const QUERY = JSON.stringify({ query: '{ agents(q: "night") { data { id } } }' });
  const ask = (credential: string, signal?: AbortSignal) =>
    fetch(freehold.graphqlUrl, {
      method: 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      body: QUERY,
      ...(signal && { signal }),
    });
  /** Does the work while reads of the directory wait. */
  const whileReadsWait = (work: () => Promise<void>) =>
    freehold.db.transaction(async (tx) => {
      await tx.query('lock table agent in access exclusive mode');
      await work();
    });
  const waitingReads = async () =>
    (
      await freehold.db.query<{ waiting: number }>(
        `select count(*)::int as waiting from pg_stat_activity
          where wait_event_type = 'Lock' and query like '%search_agents%' and datname = current_database()`,
      )
    )[0]!.waiting;

  it('are at most 32 at once, of which two read, and the operations of others go on', async () => {
    const [account, other] = [await freehold.newAccount(), await freehold.newAccount()];
    let all: Promise<Response>[] = [];
    await whileReadsWait(async () => {
      let answered = 0;
      all = Array.from({ length: 40 }, () => ask(account.accessToken).finally(() => answered++));
      // A request that arrives after the lock would find a free place.
      await eventually(async () => answered === 8);
      const refused = await Promise.race(all);
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
      expect(JSON.stringify(await refused.json())).toContain('32 operations under way');
      await eventually(async () => (await waitingReads()) === 2);
      expect((await other.graphql('{ account { id } }')).data).toEqual({ account: { id: other.id } });
      expect(await waitingReads()).toBeLessThanOrEqual(3);
    });
    const statuses = (await Promise.all(all)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(32);
    expect((await ask(account.accessToken)).status).toBe(200);
  });

  it('leave the queue when their client goes', async () => {
    const account = await freehold.newAccount();
    const reads = await queriesOf(freehold.db, async () => {
      const gone = new AbortController();
      await whileReadsWait(async () => {
        const all = Array.from({ length: 30 }, () => ask(account.accessToken, gone.signal).catch(() => undefined));
        await eventually(async () => (await waitingReads()) >= 2);
        await sleep(1_000);
        gone.abort();
        await Promise.all(all);
        await sleep(200);
      });
      expect((await ask(account.accessToken)).status).toBe(200);
    });
    const searches = reads.filter(({ text }) => text.includes('search_agents') && !text.includes('pg_stat_activity'));
    // Some began while the others waited: four run, and more when those have had their place for two seconds.
    expect(searches.length).toBeLessThan(15);
  });
});
