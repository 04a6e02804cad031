/** Streams of updates: when they end, they leave nothing in memory. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Caller } from '../../../facades/compile/run.ts';
import type { McpCaller } from '../../../facades/mcp/caller.ts';
import { Subscriptions } from '../../../facades/mcp/subscriptions.ts';
import { eventually } from '../../setup/freehold.ts';
import { openSampleApi } from '../sample-api.ts';
import { envelope, modern, rawClient, rpc } from './raw-client.ts';

describe('A stream of updates', () => {
  it.each([
    ['that asks for nothing ends at once', { notifications: {} }, 200],
    ['whose message the protocol refuses', { notifications: 'all' }, 200],
    ['whose credential never ends', { notifications: { resourceSubscriptions: [] } }, 200],
  ])('%s and keeps no watch of its credential', async (_, params, status) => {
    let watches = 0;
    let begun = 0;
    const onCredentialEnd = () => {
      begun++;
      watches++;
      return { checked: Promise.resolve(), forget: () => void watches-- };
    };
    const { app } = await openSampleApi(onTestFinished, { onCredentialEnd });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const { send } = rawClient(`${url}/mcp`, 'read');
    const body = rpc('subscriptions/listen', { ...params, ...envelope() });
    for (let i = 0; i < 3; i++)
      expect((await send({ headers: modern('subscriptions/listen'), body })).status).toBe(status);
    expect(begun).toBe(3);
    await eventually(async () => watches === 0);
  });
});

it('A client that leaves while the service reads a server leaves no subscription behind', async () => {
  let opened = 0;
  const subscriptions = new Subscriptions({
    parts: {
      contextOf: () => {
        opened++;
        throw new Error('opened');
      },
      resources: {
        read: async () => subscriptions.close(),
        refusing: async (_: unknown, __: unknown, work: () => Promise<unknown>) => work(),
      } as never,
    },
    notify: () => {},
  });
  const caller = {} as McpCaller & Caller;
  await expect(subscriptions.add('freehold://servers/SRV-0123456789', caller)).rejects.toThrow('not available');
  expect(opened).toBe(0);
});
