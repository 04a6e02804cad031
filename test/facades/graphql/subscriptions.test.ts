import { describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { listen as subscription } from '../../setup/subscription.ts';

const freehold = await startFreehold();
const { newAccount, graphqlUrl, operatorToken, internalUrl } = freehold;

interface Closed {
  code: number;
}
/** Collects the messages of a subscription. */
const listen = (credential: string, query: string, variables?: Record<string, unknown>) =>
  subscription(graphqlUrl, credential, query, variables);
const SERVER =
  'subscription ($orderNumber: ID) { serverUpdated(orderNumber: $orderNumber) { type server { orderNumber status } } }';

async function orderOf(account: TestAccount): Promise<string> {
  await account.fund(30);
  return (await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body.order_number;
}

describe('A subscription', () => {
  it('sends the current state first and then each change, without a gap', async () => {
    const account = await newAccount();
    const orderNumber = await orderOf(account);
    const live = listen(account.accessToken, SERVER, { orderNumber });
    await eventually(async () => live.messages.some(({ serverUpdated }) => serverUpdated.server.status === 'RUNNING'));
    await account.rest('DELETE', `/v1/servers/${orderNumber}`);
    await eventually(async () => live.messages.some(({ serverUpdated }) => serverUpdated.server.status === 'DELETED'));
    const late = listen(account.accessToken, SERVER, { orderNumber });
    await eventually(async () => late.messages.length === 1);
    expect(late.messages[0].serverUpdated).toEqual({
      type: 'server.deleted',
      server: { orderNumber, status: 'DELETED' },
    });
    live.dispose();
    late.dispose();
  });

  it('to the balance and to top-ups reports each payment', async () => {
    const account = await newAccount();
    const balance = listen(account.accessToken, 'subscription { balanceChanged { balanceUsd } }');
    const topUps = listen(account.accessToken, 'subscription { topUpUpdated { status creditedUsd } }');
    await eventually(async () => balance.messages.length === 1);
    expect(balance.messages[0].balanceChanged.balanceUsd).toBe(0);
    await account.topUp(100);
    await eventually(async () => balance.messages.at(-1).balanceChanged.balanceUsd === 102);
    await eventually(async () => topUps.messages.at(-1)?.topUpUpdated.status === 'CONFIRMED');
    expect(topUps.messages.at(-1).topUpUpdated.creditedUsd).toBe(102);
    balance.dispose();
    topUps.dispose();
  });

  it("to another account's order is refused", async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const orderNumber = await orderOf(theirs);
    const live = listen(mine.accessToken, SERVER, { orderNumber });
    await eventually(async () => live.failure() ?? live.messages[0]?.errors);
    expect(JSON.stringify(live.failure() ?? live.messages[0].errors)).toContain('not_found');
    live.dispose();
  });

  it('never reports servers of another account', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const live = listen(mine.accessToken, SERVER);
    const orderNumber = await orderOf(theirs);
    await eventually(async () => (await theirs.rest('GET', `/v1/servers/${orderNumber}`)).body.status === 'running');
    const own = await orderOf(mine);
    await eventually(async () => live.messages.some(({ serverUpdated }) => serverUpdated.server.status === 'RUNNING'));
    expect(new Set(live.messages.map(({ serverUpdated }) => serverUpdated.server.orderNumber))).toEqual(new Set([own]));
    live.dispose();
  });

  it('of the operator reports the servers of every account', async () => {
    const live = listen(operatorToken, SERVER);
    const made = [await orderOf(await newAccount()), await orderOf(await newAccount())];
    await eventually(async () =>
      made.every((orderNumber) =>
        live.messages.some((message) => message.serverUpdated.server.orderNumber === orderNumber),
      ),
    );
    live.dispose();
  });

  it('ends, and its socket closes, when its credential is revoked', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'live', scope: 'read' });
    const live = listen(key.plaintext, 'subscription { balanceChanged { balanceUsd } }');
    await eventually(async () => live.messages.length === 1);
    await account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    const closed = (await eventually(async () => live.failure())) as Closed;
    expect(closed.code).toBe(4403);
  });

  it('is one of at most ten for a credential, and its end allows another', async () => {
    const account = await newAccount();
    const all = Array.from({ length: 11 }, () =>
      listen(account.accessToken, 'subscription { balanceChanged { balanceUsd } }'),
    );
    await eventually(async () => all.filter((live) => live.failure() || live.messages[0]?.errors).length === 1);
    await eventually(async () => all.filter((live) => live.messages[0]?.balanceChanged).length === 10);
    for (const live of all) live.dispose();
    const again = await eventually(async () => {
      const live = listen(account.accessToken, 'subscription { balanceChanged { balanceUsd } }');
      await eventually(async () => live.messages.length || live.failure());
      const opened = Boolean(live.messages[0]?.balanceChanged);
      live.dispose();
      return opened;
    });
    expect(again).toBe(true);
  });

  it('without a valid credential closes with 4403', async () => {
    const live = listen('nonsense', SERVER);
    const closed = (await eventually(async () => live.failure())) as Closed;
    expect(closed.code).toBe(4403);
  });

  it('works over SSE, and ends with its credential', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'sse', scope: 'read' });
    const response = await fetch(graphqlUrl, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        authorization: `Bearer ${key.plaintext}`,
      },
      body: JSON.stringify({ query: 'subscription { balanceChanged { balanceUsd } }' }),
    });
    let text = '';
    const read = (async () => {
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) text += chunk;
    })();
    await eventually(async () => text.includes('"balanceUsd":0'));
    await account.topUp(30);
    await eventually(async () => text.includes('"balanceUsd":30'));
    await account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    await read;
    expect(text).toContain('event: complete');
  });
});

describe('GraphQL on the internal listener', () => {
  it('needs a credential', async () => {
    const response = await fetch(graphqlUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"query":"{ catalog { vps { code } } }"}',
    });
    expect(response.status).toBe(401);
    expect(JSON.stringify(await response.json())).toContain('missing_credential');
  });

  it('shows customers their own servers, and the operator all servers', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const orderNumber = await orderOf(theirs);
    const query = 'query ($orderNumber: ID!) { server(orderNumber: $orderNumber) { orderNumber tier { code } } }';
    expect((await mine.graphql(query, { orderNumber })).errors[0].extensions).toMatchObject({
      code: 'not_found',
      status: 404,
    });
    expect((await freehold.operator(query, { orderNumber })).data.server).toEqual({
      orderNumber,
      tier: { code: 'vps-1' },
    });
    expect((await mine.graphql('{ books { balanced } }')).errors[0].extensions.code).toBe('insufficient_scope');
  });

  it('reports invalid variables as errors of the caller', async () => {
    const { errors } = await freehold.operator(
      'mutation ($input: RegisterInput!) { register(input: $input) { account { id } } }',
      {
        input: { email: 'a@example.org', password: 'short' },
      },
    );
    expect(errors[0].message).toContain('$input');
    expect(errors[0].extensions?.code).not.toBe('internal_error');
  });

  it.each([
    [
      'too deep',
      `{ servers { data { ${'tier { name } '.repeat(1)} } } ${'a: servers { data { orderNumber } } '.repeat(25)} }`,
    ],
    [
      'too many fields',
      `{ servers { data { ${Array.from({ length: 1100 }, (_, i) => `a${i}: status`).join(' ')} } } }`,
    ],
    [
      'a thousand mutations',
      `mutation { ${Array.from({ length: 900 }, (_, i) => `a${i}: deleteServer(orderNumber: "x") { refundedUsd }`).join(' ')} }`,
    ],
    [
      'a fragment bomb',
      `{ ...F0 } ${Array.from({ length: 20 }, (_, i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`).join(' ')} fragment F20 on Query { servers { data { status } } }`,
    ],
    ['a circle of fragments', '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }'],
    ['too many tokens', `{ ${'coins { data { code } } '.repeat(2000)} }`],
  ])('refuses a document and executes nothing of it: %s', async (_, query) => {
    const { data, errors } = await freehold.operator(query);
    expect(data).toBeFalsy();
    expect(errors.length).toBeGreaterThan(0);
  });

  it('serves GraphiQL without files of other hosts, and the probes', async () => {
    const answer = await fetch(graphqlUrl, { headers: { accept: 'text/html' } });
    expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    const page = await answer.text();
    expect(page).toContain('graphiql');
    expect(page.match(/(?:src|href)="https?:\/\/[^"]+"/g) ?? []).toEqual([]);
    expect((await fetch(`${internalUrl}/healthz`)).status).toBe(200);
    expect((await fetch(`${internalUrl}/readyz`)).status).toBe(200);
    expect((await fetch(`${internalUrl}/nothing`)).status).toBe(404);
  });
});
