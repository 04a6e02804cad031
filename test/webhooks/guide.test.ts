/** The receiver that docs/use/webhooks.md prints. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { signedHeaders } from '../../provisioning/webhooks/sign.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { freePort, MACHINE, newFolder, removeFolder } from '../setup/spawn.ts';

const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const body = JSON.stringify({ type: 'server.running' });
const signed = (at = new Date()) => signedHeaders([WEBHOOK_SECRET], { id: 'evt_1', body, at });

const folder = newFolder();
const port = await freePort();
const printed = /```js\n([\s\S]*?)```/.exec(readFileSync('docs/use/webhooks.md', 'utf8'))![1]!;
writeFileSync(join(folder, 'receiver.mjs'), printed.replace('8090', String(port)));
const receiver = spawn(process.execPath, ['receiver.mjs'], { cwd: folder, env: { ...MACHINE, WEBHOOK_SECRET } });
let output = '';
receiver.stdout.on('data', (chunk) => (output += chunk));
const post = (headers: Record<string, string>, text = body) =>
  fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: text }).then(({ status }) => status);

beforeAll(() => eventually(() => post({}).catch(() => undefined)));
atEnd(async () => {
  if (receiver.exitCode === null) await Promise.all([once(receiver, 'exit'), receiver.kill()]);
  removeFolder(folder);
});

it('The printed receiver takes a signed message and prints its type', async () => {
  expect(await post(signed())).toBe(204);
  await expect.poll(() => output).toBe('evt_1 server.running\n');
});

it.each<[string, Record<string, string>]>([
  ['no headers', {}],
  ['no signature', { 'webhook-id': 'evt_1', 'webhook-timestamp': '1' }],
  ['an empty signature', { ...signed(), 'webhook-signature': '' }],
  ['a short signature', { ...signed(), 'webhook-signature': 'v1,x' }],
  ['no id', { ...signed(), 'webhook-id': '' }],
  ['a time that is no number', { ...signed(), 'webhook-timestamp': 'now' }],
  ['an old time', signed(new Date(Date.now() - 600_000))],
])('The printed receiver answers 400 to a message with %s', async (_, headers) => {
  expect(await post(headers)).toBe(400);
});

it('The printed receiver survives a broken connection and a huge message', async () => {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf');
  socket.destroy();
  await post(signed(), 'x'.repeat(10_000_000)).catch(() => undefined);
  expect(await post(signed())).toBe(204);
  expect(receiver.exitCode).toBeNull();
});
