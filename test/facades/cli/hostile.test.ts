/** The command line against a service that means harm, and beside one. */

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

const PROGRAM = join(import.meta.dirname, '../../../facades/cli/src/main.ts');
const home = newFolder();
atEnd(() => removeFolder(home));
const PROOF = join(home, 'ran');
const SERVER = {
  order_number: 'SRV-7K2M9X4QHT',
  hostname: 'web\u001b]52;c;cm0gLXJm\u0007\u009b2J\u202e',
  status: 'running',
  ipv4: `-oProxyCommand=touch ${PROOF}`,
  ipv6: null,
};

interface Seen {
  path: string;
  authorization: string | undefined;
}
/** A service that answers every call with the server, or leads to another address. */
async function hostileService(location?: string): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const service = createServer(({ url, headers: { authorization } }, response) => {
    seen.push({ path: url!, authorization });
    const headers = { 'content-type': 'application/json', ...(location && { location }) };
    const body = /^\/v1\/servers(\?|$)/.test(url!) ? { data: [SERVER], next_cursor: null, has_more: false } : SERVER;
    response.writeHead(location ? 307 : 200, headers).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  atEnd(() => void service.close());
  return { url: `http://127.0.0.1:${(service.address() as AddressInfo).port}`, seen };
}

function run(words: readonly string[], env: Record<string, string>): Promise<{ code: number | null; text: string }> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [PROGRAM, ...words], { env: { PATH, NODE_COMPILE_CACHE, HOME: home, ...env } });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  child.stdin.end();
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, text })));
}

it('The command line gives ssh nothing but an IP address', async () => {
  const { url } = await hostileService();
  const { code, text } = await run(['ssh', 'SRV-7K2M9X4QHT', '--', 'uptime'], {
    FREEHOLD_URL: url,
    FREEHOLD_TOKEN: 'token',
  });
  expect([code, text]).toEqual([2, expect.stringContaining('answered with no IP address')]);
  expect(existsSync(PROOF)).toBe(false);
});

it.each(['table', 'json', 'yaml'])(
  'The command line writes no character that commands a terminal, as %s',
  async (format) => {
    const { url } = await hostileService();
    const { code, text } = await run(['server', 'list', '--output', format], {
      FREEHOLD_URL: url,
      FREEHOLD_TOKEN: 'token',
    });
    expect([code, text]).toEqual([0, expect.stringContaining('web')]);
    expect(text.replaceAll(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
  },
);

it('The command line sends the key of a profile to no other service', async () => {
  const { url, seen } = await hostileService();
  const folder = join(home, '.config/freehold');
  mkdirSync(folder, { recursive: true });
  const profile = 'current = "prod"\n[profiles.prod]\nurl = "https://prod.example"\ntoken = "svc_live_secret"\n';
  writeFileSync(join(folder, 'config.toml'), profile);
  await run(['server', 'list'], { FREEHOLD_URL: url });
  await run(['server', 'list'], { FREEHOLD_URL: url, FREEHOLD_TOKEN: 'svc_test_other' });
  expect(seen.map(({ authorization }) => authorization)).toEqual([undefined, 'Bearer svc_test_other']);
});

it('The command line asks no question that commands a terminal', async () => {
  const { url } = await hostileService();
  const command = `'${process.execPath}' '${PROGRAM}' server delete web`;
  // `script` gives the program a terminal.
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env.PATH, HOME: home, FREEHOLD_URL: url, FREEHOLD_TOKEN: 'token' },
  });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
    if (text.includes('to confirm: ')) child.stdin.end('no\r');
  });
  await new Promise((resolve) => child.on('close', resolve));
  expect(text).toContain('to confirm: ');
  for (const command of ['\u001b]', '\u009b', '\u202e']) expect(text).not.toContain(command);
});

it('The command line logs out at the service of the profile, although the environment names another', async () => {
  const [own, other] = [await hostileService(), await hostileService()];
  const config = join(home, 'logout.toml');
  writeFileSync(config, `current = "a"\n[profiles.a]\nurl = "${own.url}"\ntoken = "svc_live_own"\nkey_id = "key_1"\n`);
  await run(['logout'], { FREEHOLD_CONFIG: config, FREEHOLD_URL: other.url, FREEHOLD_TOKEN: 'svc_test_other' });
  expect(other.seen).toEqual([]);
  expect(own.seen).toEqual([{ path: '/v1/auth/api-keys/key_1', authorization: 'Bearer svc_live_own' }]);
});

it('The command line follows no service to another address', async () => {
  const other = await hostileService();
  const { url } = await hostileService(`${other.url}/v1/servers`);
  const { code, text } = await run(['server', 'list'], { FREEHOLD_URL: url, FREEHOLD_TOKEN: 'token' });
  expect([code, text]).toEqual([5, expect.stringContaining('Use the address of the service itself as url.')]);
  expect(other.seen).toEqual([]);
});
