/** The console in a real browser (Debian's chromium), as an operator opens it. */
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { atEnd } from '../../setup/end.ts';

/** Returns the ways to the console of a service. `start` launches the browser, and `stop` ends it. */
export function consoleAt(own: string) {
  let browser: Browser;
  /** A page whose test has ended, without its data. */
  let idle: Page | undefined;
  const start = async () => {
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  };

  /** Returns a page of a new context, or the idle one. A browser takes a second of a processor for a new context. */
  async function newPage(options: BrowserContextOptions): Promise<Page> {
    const page = Object.keys(options).length ? undefined : idle;
    if (!page) return (await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })).newPage();
    idle = undefined;
    return page;
  }

  /** Keeps the page without its data, or closes its context. */
  async function leave(page: Page, isReusable: boolean): Promise<void> {
    const context = page.context();
    if (idle || !isReusable || page.isClosed() || changed.has(page)) return context.close();
    for (const other of context.pages()) if (other !== page) await other.close();
    page.removeAllListeners();
    await page.evaluate(() => {
      localStorage.clear();
      sessionStorage.clear();
    });
    await context.clearCookies();
    await page.goto('about:blank');
    idle = page;
  }

  /** Opens a page without a login. It fails the test for an error of the page, or for a request to another host. */
  async function visit(path = '', clock?: 'clock', options: BrowserContextOptions = {}, origin = own): Promise<Page> {
    const page = await newPage(options);
    page.context().setDefaultTimeout(240_000);
    const faults: string[] = [];
    page.on('pageerror', ({ message }) => faults.push(message));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('request', (request) => request.url().startsWith(origin) || faults.push(request.url()));
    atEnd(async () => {
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await leave(page, Object.keys(options).length === 0 && origin === own);
      expect(faults.filter((fault) => !/status of 4|WebSocket|ERR_(CONNECTION|EMPTY|SOCKET)/.test(fault))).toEqual([]);
    });
    if (clock) await installClock(page);
    await page.goto(`${origin}/${path}`);
    return page;
  }

  /** Opens the console as an operator with a token. */
  async function open(token: string, options?: BrowserContextOptions, origin?: string): Promise<Page> {
    const page = await visit('', undefined, options, origin);
    await logIn(page, token);
    return page;
  }

  /** Opens a page of the console by its path, with its filters. */
  async function openPage(token: string, path: string, options?: BrowserContextOptions, origin?: string) {
    const page = await open(token, options, origin);
    await page.getByRole('heading', { name: 'Today' }).waitFor();
    await visitPath(page, path);
    return page;
  }
  return { start, stop: () => browser.close(), visit, open, openPage };
}

/** Types the token into the login. */
export async function logIn(page: Page, token: string): Promise<void> {
  await page.getByRole('button', { name: 'Use a token' }).click();
  await page.getByLabel('Your operator token').fill(token);
  await page.getByRole('button', { name: 'Open the console' }).click();
}

/** Goes to a page of the open console. */
export const visitPath = (page: Page, path: string): Promise<void> =>
  page.evaluate((hash) => {
    location.hash = hash;
  }, path);

/** Pages with a change that lasts. No other test gets them. */
const changed = new WeakSet<Page>();

/** Gives the page a clock that the test moves. */
export async function installClock(page: Page): Promise<void> {
  changed.add(page);
  await page.clock.install();
}

/** Takes the sockets of the page. Default: no message passes. */
export async function takeSockets(page: Page, take: Parameters<Page['routeWebSocket']>[1] = () => {}): Promise<void> {
  changed.add(page);
  await page.routeWebSocket('**/graphql', take);
}

/** Stops the clock of the open console. Its timers wait for `page.clock.runFor`, however busy the machine is. */
export async function stopClock(page: Page): Promise<void> {
  await installClock(page);
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1_000);
}
