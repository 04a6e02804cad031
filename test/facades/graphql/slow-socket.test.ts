/** A WebSocket whose client is too slow is closed in a way after which the client comes back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { eventually, startFreehold } from '../../setup/freehold.ts';

const { newAccount, graphqlUrl } = await startFreehold({ ROLES: 'api' });
const TYPES = Array.from({ length: 20 }, (_, n) => `t${n}: types { name description fields { name description } }`);
const LARGE = `{ __schema { ${TYPES.join(' ')} } }`;

// On a busy machine, this process may pause for two seconds. The service waits no longer for the answer to its close.
it('A slow WebSocket is closed with 1013, and its client finds the present state when it returns', {
  retry: 2,
}, async () => {
  const account = await newAccount();
  const sockets: WebSocket[] = [];
  class Noted extends WebSocket {
    constructor(url: string, protocol: string) {
      super(url, protocol);
      sockets.push(this);
    }
  }
  const codes: number[] = [];
  const funded = Promise.withResolvers<void>();
  const client = createClient({
    url: graphqlUrl.replace('http', 'ws'),
    webSocketImpl: Noted,
    connectionParams: { authorization: `Bearer ${account.accessToken}` },
    retryAttempts: 10,
    retryWait: () => funded.promise,
    on: { closed: (event) => void codes.push((event as { code: number }).code) },
  });
  onTestFinished(() => {
    // The end of the client waits for its retry.
    funded.resolve();
    return client.dispose();
  });
  const balances: number[] = [];
  const query = 'subscription { balanceChanged { balanceUsd } }';
  client.subscribe<{ balanceChanged: { balanceUsd: number } }>(
    { query },
    { next: ({ data }) => void balances.push(data!.balanceChanged.balanceUsd), error: () => {}, complete: () => {} },
  );
  await eventually(async () => balances.length === 1);
  const [slow] = sockets;
  // The service waits two seconds for the answer to its close. So each pause is only a little longer than the one before.
  for (let [id, pauseMs] = [0, 300]; !codes.length && pauseMs < 8_000; pauseMs *= 1.3) {
    slow!.pause();
    for (const last = id + 20; id < last; id++)
      slow!.send(JSON.stringify({ id: `large ${id}`, type: 'subscribe', payload: { query: LARGE } }));
    await sleep(pauseMs);
    slow!.resume();
    await sleep(700);
  }
  expect(codes).toEqual([1013]);
  await account.fund(30);
  expect(balances).toHaveLength(1);
  funded.resolve();
  await eventually(async () => balances.at(-1) === 30);
  expect([balances.length, sockets.length]).toEqual([2, 2]);
});
