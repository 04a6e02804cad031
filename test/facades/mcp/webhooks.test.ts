import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { startReceiver, verify } from '../../setup/receiver.ts';

const { newAccount, publicUrl } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

it('An agent registers, tests, lists and deletes a webhook', async () => {
  const receiver = await startReceiver();
  atEnd(() => receiver.close());
  const { accessToken } = await newAccount();
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${publicUrl}/mcp`)));
  // biome-ignore lint/suspicious/noExplicitAny: the test checks the answer
  const call = async (name: string, args: object = {}): Promise<any> =>
    (await client.callTool({ name, arguments: { ...args, access_token: accessToken } })).structuredContent;
  const created = await call('create_webhook', { url: receiver.url, events: ['server.*', 'topup.confirmed'] });
  expect(created).toMatchObject({ event_filter: 'server.*,topup.confirmed', status: 'enabled' });
  expect(await call('test_webhook', { id: created.id })).toMatchObject({ delivered: true, response_status: 204 });
  verify(created.secret, receiver.received[0]!);
  const { secret, ...webhook } = created;
  const [listed] = (await call('list_webhooks')).data;
  expect(listed).toEqual({ ...webhook, last_delivery: expect.objectContaining({ event_type: 'webhook.test' }) });
  expect(await call('create_webhook', { url: 'https://169.254.169.254/' })).toMatchObject({ code: 'url_not_allowed' });
  expect(await call('create_webhook', { url: receiver.url, event_filter: 'x' })).toMatchObject({
    code: 'unknown_event',
  });
  expect(await call('delete_webhook', { id: created.id })).toEqual({ id: created.id, deleted: true });
  const { tools } = await client.listTools();
  const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
  expect(hints.list_webhooks).toMatchObject({ readOnlyHint: true });
  expect(hints.delete_webhook).toMatchObject({ destructiveHint: true });
  await client.close();
});
