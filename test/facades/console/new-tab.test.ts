/** A tab that the operator opens from a link of the console has the login of the console. Another tab has none. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasChromium } from '../../setup/chromium.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { consoleAt } from './open-page.ts';

const { graphqlUrl, operatorToken } = await startFreehold();
const { start, stop, openPage } = consoleAt(new URL(graphqlUrl).origin);

/** Opens a link of the menu beside the page. */
async function openAside(page: Page, name: string, how: Parameters<Page['click']>[1]): Promise<Page> {
  const [opened] = await Promise.all([
    page.context().waitForEvent('page'),
    page.getByRole('navigation').getByRole('link', { name }).click(how),
  ]);
  return opened;
}
const loginOf = (page: Page) => page.getByRole('button', { name: 'Use a token' });

describe.runIf(hasChromium)('A tab', () => {
  beforeAll(start);
  afterAll(stop);

  it.each([
    ['Ctrl and a click', { modifiers: ['Control'] }],
    ['the middle button', { button: 'middle' }],
  ] as const)('opened by %s is signed in', async (_, how) => {
    const page = await openPage(operatorToken, 'servers');
    const opened = await openAside(page, 'Payouts', { ...how } as Parameters<Page['click']>[1]);
    await opened.getByRole('heading', { name: 'Payouts' }).waitFor();
    expect(await opened.evaluate(() => [window.opener, localStorage.length, document.cookie])).toEqual([null, 0, '']);
  });

  it('with the address alone asks for a login, and so does the second one after a click', async () => {
    const page = await openPage(operatorToken, 'servers');
    const visit = async () => {
      const other = await page.context().newPage();
      await other.goto(page.url());
      return other;
    };
    await loginOf(await visit()).waitFor();
    await (await openAside(page, 'Payouts', { modifiers: ['Control'] }))
      .getByRole('heading', { name: 'Payouts' })
      .waitFor();
    await loginOf(await visit()).waitFor();
  });

  it('gives nothing after the log-out of the tab before it', async () => {
    const page = await openPage(operatorToken, 'servers');
    const opened = await openAside(page, 'Payouts', { modifiers: ['Control'] });
    await opened.getByRole('heading', { name: 'Payouts' }).waitFor();
    await opened.getByRole('button', { name: 'Log out' }).click();
    await loginOf(opened).waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await loginOf(other).waitFor();
  });
});
