/**
 * Streams whose credential ends while they open. The service has authenticated the caller, and the end comes before the
 * stream watches for it. Such a stream hears no change.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type CredentialEnd, onCredentialEnd } from '../../../resolvers/accounts/auth/credential-end.ts';
import { envelope, INITIALIZE, modern, of2025, rawClient, rpc } from '../../facades/mcp/raw-client.ts';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { type RestClient, restClient } from '../../setup/spawn.ts';
import { listen } from '../../setup/subscription.ts';

const { db, graphqlUrl, newAccount, publicUrl } = await startFreehold();
const SUBSCRIPTION = 'subscription { serverUpdated { type } }';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let account: TestAccount;
let key: { key_id: string; plaintext: string };
let byKey: RestClient;
let server: string;
beforeEach(async () => {
  account = await newAccount();
  await account.fund(30);
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
  server = body.order_number;
  await eventually(async () => (await account.rest('GET', `/v1/servers/${server}`)).body.status === 'running');
  key = (await account.rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'full' })).body;
  byKey = restClient(publicUrl, key.plaintext);
  // The process knows the key from now on.
  await byKey('GET', '/v1/account');
});

/** The key ends, as it does for a stream whose process got the notice before the stream watched for it. */
const endUnheard = () =>
  db.query(`update api_key set status = 'REVOKED', revoked_at = now() where id = $1`, [key.key_id]);
const change = () => account.rest('PATCH', `/v1/servers/${server}`, { power_state: 'off' });
const changed = async () =>
  eventually(async () => (await account.rest('GET', `/v1/servers/${server}`)).body.status === 'stopped');

/** Opens a stream with an HTTP request. @returns its text */
async function stream(url: string, request: RequestInit): Promise<{ text: () => string; isOver: () => boolean }> {
  const aborted = new AbortController();
  onTestFinished(() => aborted.abort());
  const response = await fetch(url, { ...request, signal: aborted.signal });
  let [text, isOver] = ['', false];
  (async () => {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) text += chunk;
  })()
    .catch(() => {})
    .finally(() => (isOver = true));
  return { text: () => text, isOver: () => isOver };
}

const { usual, send } = rawClient(`${publicUrl}/mcp`, '');
const headersOf = () => ({ ...usual, authorization: `Bearer ${key.plaintext}` });

const STREAMS = {
  'of MCP 2026-07-28': () => {
    const notifications = { resourceSubscriptions: [`freehold://servers/${server}`] };
    const body = JSON.stringify(rpc('subscriptions/listen', { notifications, ...envelope() }));
    const headers = { ...headersOf(), ...modern('subscriptions/listen') };
    return stream(`${publicUrl}/mcp`, { method: 'POST', headers, body });
  },
  'of a session of MCP 2025': async () => {
    const { session } = await send({ headers: headersOf(), body: rpc('initialize', INITIALIZE) });
    const headers = { ...headersOf(), ...(session && { 'mcp-session-id': session }), ...of2025('2025-11-25') };
    const subscribe = { uri: `freehold://servers/${server}` };
    await send({ headers, body: rpc('resources/subscribe', subscribe) });
    return stream(`${publicUrl}/mcp`, { headers });
  },
  'of GraphQL over SSE': () => {
    const headers = { ...headersOf(), accept: 'text/event-stream' };
    return stream(graphqlUrl, { method: 'POST', headers, body: JSON.stringify({ query: SUBSCRIPTION }) });
  },
  'of GraphQL over WebSocket': async () => {
    const { messages, failure, dispose } = listen(graphqlUrl, key.plaintext, SUBSCRIPTION);
    onTestFinished(() => void dispose());
    await eventually(async () => failure() || messages.length);
    return { text: () => JSON.stringify(messages), isOver: () => failure() !== undefined };
  },
};
const HEARD = /resources\/updated|"type":"server\./;

it('A stream over HTTP without updates has a comment after some seconds, so no proxy takes it for dead', async () => {
  const { 'of GraphQL over WebSocket': _, ...overHttp } = STREAMS;
  // The first comment of MCP says that the stream is open.
  const isCommented = (text: string) => [...text.replace(': open\n', '').matchAll(/^:.*\n\n/gm)].length > 0;
  const streams = await Promise.all(Object.values(overHttp).map((open) => open()));
  await eventually(async () => streams.every(({ text }) => isCommented(text())), 20);
  expect(streams.map(({ isOver }) => isOver())).toEqual([false, false, false]);
});

describe.each(Object.entries(STREAMS))('A stream %s', (_, open) => {
  it('hears changes while its credential works', async () => {
    const { text } = await open();
    await change();
    await eventually(async () => HEARD.test(text()));
  });

  it('ends with its credential, also after the garbage collector has run', async () => {
    const { isOver } = await open();
    // Each round looks at the whole heap, and the second one also finds what the first has let go.
    for (let i = 0; i < 2; i++) {
      collectGarbage();
      await new Promise((resume) => setImmediate(resume));
    }
    expect(isOver()).toBe(false);
    await account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    await eventually(async () => isOver(), 20);
  });

  it('ends and hears nothing if its credential ended before', async () => {
    await endUnheard();
    const { text, isOver } = await open();
    await eventually(async () => isOver());
    await change();
    await changed();
    expect(text()).not.toMatch(HEARD);
  });

  it('ends and hears nothing if its credential ends while it opens', async () => {
    const opening = Array.from({ length: 8 }, () => open().catch(() => undefined));
    await account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    const streams = (await Promise.all(opening)).flatMap((one) => one ?? []);
    await eventually(async () => streams.every(({ isOver }) => isOver()));
    const before = streams.map(({ text }) => text());
    await change();
    await changed();
    expect(streams.map(({ text }) => text())).toEqual(before);
  });
});

describe('A watch of a credential', () => {
  const watched = async (over = db) => {
    const heard: CredentialEnd[] = [];
    const viewer = { accountId: account.id, kind: 'api_key', credentialId: key.key_id, name: null } as const;
    const watch = onCredentialEnd(over, { ...viewer, scopes: new Set(), expiresAt: null }, (how) => heard.push(how));
    onTestFinished(() => watch.forget());
    await watch.checked;
    return heard;
  };

  it('hears nothing of a credential that works', async () => {
    expect(await watched()).toEqual([]);
  });

  it('hears of an end, and of a suspension, before it began', async () => {
    await db.query(`update account set suspended_at = now(), suspended_for = 'Spam.' where id = $1`, [account.id]);
    expect(await watched()).toEqual(['ended']);
    await db.query('update account set suspended_at = null, suspended_for = null where id = $1', [account.id]);
    await endUnheard();
    expect(await watched()).toEqual(['ended']);
  });
});
