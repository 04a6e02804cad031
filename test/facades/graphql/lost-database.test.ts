/** Subscriptions end in a way after which their clients come back when the service loses its database. */
import { createClient } from 'graphql-ws';
import { beforeEach, expect, inject, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { bearer } from '../../accounts/oauth/requests.ts';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { administer } from '../../setup/postgres.ts';

const { db, graphqlUrl, newAccount } = await startFreehold({ ROLES: 'api' });
const url = inject('postgresUrl');
const [{ name }] = (await db.query<{ name: string }>('select current_database() as name')) as [{ name: string }];
const query = 'subscription { balanceChanged { balanceUsd } }';
let account: TestAccount;
beforeEach(async () => {
  account = await newAccount();
});

const terminate = (which: string) =>
  administer(url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and ${which}`);
const setOpen = (open: boolean) => administer(url, `alter database ${name} allow_connections ${open}`);
/** The bus still hears of changes, but the service cannot read them. */
async function loseReads(): Promise<void> {
  onTestFinished(() => setOpen(true));
  await setOpen(false);
  await terminate(`query not like 'listen %'`);
}
const change = () => db.bus.publish([{ kind: 'balance', accountId: account.id, id: account.id }]);

/** Subscribes as GraphiQL does: its client comes back after a loss. */
function subscribed() {
  const [messages, codes]: [unknown[], number[]] = [[], []];
  const client = createClient({
    url: graphqlUrl.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${account.accessToken}` },
    retryAttempts: 100,
    retryWait: () => new Promise((resume) => setTimeout(resume, 50)),
    on: { closed: (event) => void codes.push((event as { code: number }).code) },
  });
  onTestFinished(() => client.dispose());
  let failure: unknown;
  const sink = {
    next: (message: unknown) => void messages.push(message),
    error: (error: unknown) => (failure = error),
    complete: () => {},
  };
  client.subscribe({ query }, sink);
  return { messages, codes, failure: () => failure };
}

it('A restart of the database closes a WebSocket with 1013, and its client hears the present state again', async () => {
  const live = subscribed();
  await eventually(async () => live.messages.length === 1);
  await terminate('true');
  await eventually(async () => live.messages.length === 2);
  expect([new Set(live.codes), live.failure()]).toEqual([new Set([1013]), undefined]);
});

it('A change that the service cannot read closes a WebSocket with 1013, until the service can', async () => {
  const live = subscribed();
  await eventually(async () => live.messages.length === 1);
  await loseReads();
  change();
  await eventually(async () => live.codes.length > 1);
  await setOpen(true);
  await eventually(async () => live.messages.length === 2);
  expect([new Set(live.codes), live.failure()]).toEqual([new Set([1013]), undefined]);
  expect(JSON.stringify(live.messages)).not.toContain('errors');
});

it.each([
  ['a change that the service cannot read', () => loseReads().then(change)],
  ['a restart of the database', () => terminate('true')],
])('SSE breaks off, and does not complete, after %s', async (_, lose) => {
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream', ...bearer(account.accessToken) };
  const response = await fetch(graphqlUrl, { method: 'POST', headers, body: JSON.stringify({ query }) });
  let text = '';
  const read = (async () => {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) text += chunk;
  })();
  read.catch(() => {});
  await eventually(async () => text.includes('"balanceUsd":0'));
  await lose();
  await expect(read).rejects.toThrow();
  expect(text).not.toMatch(/errors|complete/);
});
