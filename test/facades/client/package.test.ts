/** The published SDK: its types follow the OpenAPI document, it runs in browsers, and it verifies webhooks. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { verifyWebhook } from '../../../facades/client/src/index.ts';
import { readDocument, typescriptOf } from '../../../facades/client/typescript.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

const SOURCES = join(import.meta.dirname, '../../../facades/client/src');

it('The types follow the OpenAPI document. `node facades/client/typescript.ts` writes them', () => {
  expect(readFileSync(join(SOURCES, 'api.ts'), 'utf8')).toBe(typescriptOf(readDocument()));
});

it('The SDK has no method for an endpoint that is only planned', () => {
  expect(typescriptOf(readDocument())).not.toMatch(/Recover:|UpdateAccount:/);
});

it('The sources need no module but their own, so browsers and Deno run them', () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const imports = files.flatMap((name) =>
    [...readFileSync(join(SOURCES, name), 'utf8').matchAll(/from '([^']+)'/g)].map(([, from]) => from!),
  );
  expect(imports.filter((from) => !from.startsWith('./') && !from.startsWith('../'))).toEqual([]);
});

it('The build is checked by the strictest types, and a program imports it', () => {
  const folder = newFolder();
  try {
    const build = ['-p', join(SOURCES, '..'), '--outDir', folder];
    execFileSync('tsc', build);
    const program = `import { Freehold } from '${folder}/index.js'; console.log(typeof new Freehold().servers.order);`;
    expect(execFileSync('node', ['--input-type=module', '-e', program], { encoding: 'utf8' })).toBe('function\n');
  } finally {
    removeFolder(folder);
  }
});

describe('A webhook message', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const body = JSON.stringify({
    id: 'evt_1',
    type: 'server.running',
    created_at: '2026-11-29T00:00:00.000Z',
    data: {},
  });
  const now = new Date();
  const signed = (key = secret, time = now) => ({
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(time.getTime() / 1000)),
    'webhook-signature': new Webhook(key).sign('evt_1', time, body),
  });

  it('is accepted with a right signature, also beside that of another secret', async () => {
    expect(await verifyWebhook(body, signed(), secret)).toMatchObject({ type: 'server.running' });
    const both = {
      ...signed(),
      'webhook-signature': `${signed('whsec_AAAA')['webhook-signature']} ${signed()['webhook-signature']}`,
    };
    expect(await verifyWebhook(body, new Headers(both), secret)).toMatchObject({ id: 'evt_1' });
  });

  it.each([
    ['another body', `${body} `, signed(), 'No signature'],
    ['another secret', body, signed('whsec_AAAA'), 'No signature'],
    ['an old time', body, signed(secret, new Date(now.getTime() - 400_000)), 'The time'],
    ['a time that is no number', body, { ...signed(), 'webhook-timestamp': 'now' }, 'The time'],
    ['no signature', body, { ...signed(), 'webhook-signature': undefined }, 'The header webhook-signature'],
  ])('is refused with %s', async (_, text, headers, reason) => {
    await expect(verifyWebhook(text, headers, secret)).rejects.toThrow(reason);
  });
});
