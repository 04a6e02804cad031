/** The filters above a list of the console follow the keys. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { consoleAt, stopClock, visitPath } from './open-page.ts';

const { db, graphqlUrl, newAccount, operatorToken } = await startFreehold();
const { start, stop, openPage } = consoleAt(new URL(graphqlUrl).origin);

/** Opens the list of accounts, and enters its search. */
async function openSearch() {
  const page = await openPage(operatorToken, 'accounts');
  const field = page.getByLabel('Search', { exact: true });
  await field.click();
  return { page, field };
}
const historyOf = (page: Page) => page.evaluate(() => history.length);
const hashOf = (page: Page) => page.evaluate(() => location.hash);
const searchesOf = (page: Page): string[] => {
  const searches: string[] = [];
  page.on('request', (request) => {
    const { search } = request.postDataJSON()?.variables ?? {};
    if (search) searches.push(search);
  });
  return searches;
};

describe.runIf(hasChromium)('A filter of the console', () => {
  beforeAll(start);
  atEnd(stop);

  it('applies when the keys rest, with one request and without an entry in the history', async () => {
    const { email } = await newAccount();
    await newAccount();
    const { page, field } = await openSearch();
    const [before, searches] = [await historyOf(page), searchesOf(page)];
    await stopClock(page);
    for (const letter of email) {
      await page.keyboard.type(letter);
      await page.clock.runFor(290);
    }
    expect(await hashOf(page)).toBe('#accounts');
    await page.clock.runFor(10);
    expect(await hashOf(page)).toBe(`#accounts?search=${encodeURIComponent(email)}`);
    await page.clock.resume();
    await expect.poll(() => page.getByRole('grid').getAttribute('aria-rowcount')).toBe('2');
    await page.getByRole('gridcell', { name: email }).waitFor();
    expect([...new Set(searches)]).toEqual([email]);
    expect(await historyOf(page)).toBe(before);
    expect(await field.inputValue()).toBe(email);
  });

  it('keeps the focus and the caret, also in the middle of the text', async () => {
    const { page, field } = await openSearch();
    await page.keyboard.type('noor@mail.example');
    await expect.poll(() => hashOf(page)).toContain('noor%40mail.example');
    for (let n = 0; n < 'mail.example'.length; n++) await page.keyboard.press('ArrowLeft');
    await page.keyboard.type('my');
    await expect.poll(() => hashOf(page)).toContain('mymail.example');
    await page.getByText('No account fits.').waitFor();
    await page.keyboard.type('-');
    expect(await field.inputValue()).toBe('noor@my-mail.example');
  });

  it('applies at once by Enter', async () => {
    const { page } = await openSearch();
    await stopClock(page);
    await page.keyboard.type('noor');
    expect(await hashOf(page)).toBe('#accounts');
    await page.keyboard.press('Enter');
    expect(await hashOf(page)).toBe('#accounts?search=noor');
  });

  it('keeps the letters of the operator while the list reads again', async () => {
    const account = await newAccount();
    const { page, field } = await openSearch();
    for (let n = 0; n < 40; n++) {
      await page.keyboard.type('x');
      if (n % 10 === 0)
        await db.transaction(async (tx) => tx.changed({ kind: 'server', accountId: account.id, id: 'SRV-X' }));
      await page.waitForTimeout(100);
    }
    expect(await field.inputValue()).toBe('x'.repeat(40));
  });

  it('leaves the page alone to which the operator has gone meanwhile', async () => {
    const { page } = await openSearch();
    await page.keyboard.type('noor');
    await visitPath(page, 'payouts');
    await page.getByText('No payout.').waitFor();
    await page.waitForTimeout(600);
    expect(await hashOf(page)).toBe('#payouts');
  });
});
