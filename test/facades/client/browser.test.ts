/** The packed SDK as an ES module in a real browser (Debian's chromium), on a page of another host. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Freehold } from '../../../facades/client/src/index.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { say } from '../../setup/say.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { installed } from './install.ts';

if (!hasChromium) say('skipped: the SDK in a browser, because there is no chromium (Debian: chromium)');
const { publicUrl, newAccount } = await startFreehold();
const folder = newFolder();
atEnd(() => removeFolder(folder));

/** The page of the guide. */
const GUIDE = readFileSync(join(import.meta.dirname, '../../../docs/use/sdk.md'), 'utf8');
const PAGE = /```html\n([\s\S]*?)```/.exec(GUIDE)![1]!.replace('http://localhost:3000', publicUrl);

describe.runIf(hasChromium)('The SDK in a browser', () => {
  let browser: Browser;
  let page: Page;
  const server = createServer((request, response) => {
    const isModule = request.url!.startsWith('/freehold/');
    response.setHeader('content-type', isModule ? 'text/javascript' : 'text/html');
    response.end(
      isModule
        ? readFileSync(join(folder, 'node_modules/freehold/dist', basename(request.url!)))
        : `<!doctype html><title>A page</title><body>${PAGE}`,
    );
  });
  beforeAll(async () => {
    installed(join(import.meta.dirname, '../../../facades/client'), folder);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
    page = await browser.newPage();
    page.setDefaultTimeout(240_000);
    // The name of the host differs, so the origin does.
    await page.goto(`http://localhost:${(server.address() as AddressInfo).port}/`);
  });
  atEnd(async () => {
    await browser.close();
    server.close();
  });

  /** Runs a function in the page with the SDK. */
  const inPage = <T>(apiKey: string, use: (freehold: Freehold) => Promise<T>): Promise<T> =>
    page.evaluate(
      async ([url, key, code]) => {
        const { Freehold } = await import('freehold' as string);
        // biome-ignore lint/security/noGlobalEval: playwright hands over texts, and the function is one of this file
        return globalThis.eval(code!)(new Freehold({ url, apiKey: key }));
      },
      [publicUrl, apiKey, `(${use})`] as const,
    );

  it('lists the tiers without a credential, as the guide says', async () => {
    await page.getByText('vps-1').first().waitFor();
  });

  it('orders a server with an API key, waits for it, and iterates over the list', async () => {
    const account = await newAccount();
    await account.fund(10);
    const result = await inPage(account.accessToken, async (freehold) => {
      const order = await freehold.servers.order({ service_code: 'vps-1', hostname: 'from-a-page' });
      await order.ready();
      return (await freehold.servers.list().all()).map(({ hostname, status }) => ({ hostname, status }));
    });
    expect(result).toEqual([{ hostname: 'from-a-page', status: 'running' }]);
  });

  it('reads the whole refusal, with the headers that other hosts may see', async () => {
    const { accessToken } = await newAccount();
    const refusal = await inPage(accessToken, async (freehold) =>
      freehold.servers.order({ service_code: 'vps-1' }).catch(({ code, status, requestId, cause }) => ({
        code,
        status,
        hasId: Boolean(requestId),
        hasDemand: Boolean(cause?.required),
      })),
    );
    expect(refusal).toEqual({ code: 'insufficient_balance', status: 402, hasId: true, hasDemand: true });
  });
});
