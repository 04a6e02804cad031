/** The site in a real browser (Debian's chromium), without JavaScript. */
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { say } from '../../setup/say.ts';

const { publicUrl } = await startFreehold({ SITE_COLOR: '#ffe95c' });
if (!hasChromium) say('skipped: the site in a browser, because there is no chromium (Debian: chromium)');

/** One page of each kind. */
const KINDS = [
  ...['/', '/status', '/canary', '/docs', '/docs/quickstart', '/docs/limits', '/docs/agents', '/docs/errors'],
  ...['/docs/api', '/docs/api/servers', '/docs/api/servers/order-server', '/docs/api/oauth/issue-oauth-token'],
  ...['/docs/search?q=server', '/nowhere'],
];

describe.runIf(hasChromium)('The site in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  });
  atEnd(() => browser.close());

  /** Opens a page. The test fails for an error of it, and for a request to another host. */
  async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      javaScriptEnabled: false,
      ...options,
    });
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('request', (request) => request.url().startsWith(publicUrl) || faults.push(request.url()));
    onTestFinished(async () => {
      await context.close();
      expect(faults.filter((fault) => !/status of 404/.test(fault))).toEqual([]);
    });
    await page.goto(publicUrl + path);
    return page;
  }

  it('leads to the sample of an order, and shows the tool of an agent on a click', async () => {
    const page = await open('/');
    await page.getByRole('link', { name: 'API', exact: true }).click();
    await page.getByRole('link', { name: 'POST /v1/servers' }).click();
    const samples = page.getByRole('radiogroup');
    const command = `curl ${publicUrl}/v1/servers`;
    expect(await samples.innerText()).toContain(command);
    await samples.getByText('MCP', { exact: true }).click();
    expect(await samples.innerText()).toContain('"name": "order_server"');
    expect(await samples.innerText()).not.toContain(command);
  });

  it('opens nested fields on a click', async () => {
    const page = await open('/docs/api/servers/get-server');
    const inner = page
      .getByText('The name of that address', { exact: false })
      .or(page.locator('details .name').first());
    expect(await inner.first().isVisible()).toBe(false);
    await page.locator('.body summary').first().click();
    expect(await inner.first().isVisible()).toBe(true);
  });

  it('searches by the form of every page', async () => {
    const page = await open('/docs/quickstart');
    await page.getByRole('searchbox').fill('idempotency');
    await page.getByRole('searchbox').press('Enter');
    await page.getByRole('heading', { name: 'Search' }).waitFor();
    expect(await page.locator('.results li').count()).toBeGreaterThan(2);
    await page.getByRole('link', { name: 'idempotency_key_reused' }).click();
    expect(page.url()).toBe(`${publicUrl}/docs/errors#idempotency_key_reused`);
  });

  it.each(['light', 'dark'] as const)('has no fault of accessibility, %s', async (colorScheme) => {
    const page = await open('/', { colorScheme, javaScriptEnabled: true });
    const told: string[] = [];
    for (const path of KINDS) {
      await page.goto(publicUrl + path);
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
      told.push(...violations.map(({ id, nodes }) => `${path} ${id}: ${nodes[0]!.html}`));
    }
    expect(told).toEqual([]);
  });

  it('fits a screen of 360 pixels', async () => {
    const page = await open('/', { viewport: { width: 360, height: 740 }, javaScriptEnabled: true });
    for (const path of KINDS) {
      await page.goto(publicUrl + path);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(width, path).toBe(360);
    }
  });

  it('has the menu of the documentation behind one word on a narrow screen', async () => {
    const page = await open('/docs/quickstart', { viewport: { width: 390, height: 844 } });
    const menu = page.getByRole('navigation', { name: 'Contents' });
    expect(await menu.isVisible()).toBe(false);
    await page.getByText('Contents', { exact: true }).click();
    await menu.getByRole('link', { name: 'Webhooks' }).first().click();
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
  });

  it('prints a page with all samples, and without its navigation', async () => {
    const page = await open('/docs/api/servers/order-server');
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('navigation').count()).toBe(0);
    for (const text of ['curl http', '"name": "order_server"'])
      expect(await page.locator('.tabs').innerText()).toContain(text);
  });
});
