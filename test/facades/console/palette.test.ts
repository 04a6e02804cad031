/** The palette of the console finds things: accounts and servers. */
import axe from 'axe-core';
import type { BrowserContextOptions, Page, Request, Route } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { consoleAt, stopClock } from './open-page.ts';

const { anonymous, graphqlUrl, newAccount, operator, operatorToken } = await startFreehold();
const { start, stop, openPage } = consoleAt(new URL(graphqlUrl).origin);

const register = (email: string) =>
  anonymous('POST', '/v1/auth/register', { email, password: 'a long password of a test' });
async function order(hostname: string): Promise<string> {
  const account = await newAccount();
  await account.fund(30);
  return (await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname })).body.order_number;
}
const openPalette = async (options?: BrowserContextOptions): Promise<Page> => {
  const page = await openPage(operatorToken, 'payouts', options);
  await page.getByText('No payout.').waitFor();
  await page.keyboard.press('Control+k');
  return page;
};
/** The text by which a request asks for things. */
const textOf = (request: Request): string | undefined => request.postDataJSON()?.variables?.accounts;
const hit = (page: Page, name: string | RegExp) => page.getByRole('dialog').getByRole('option', { name });
/** The texts of all options. */
const linesOf = async (page: Page): Promise<string[]> =>
  (await page.getByRole('dialog').getByRole('option').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());
const field = (page: Page) => page.getByRole('dialog').getByRole('combobox');
const details = (page: Page, name: string) => page.getByRole('complementary').getByRole('heading', { name }).waitFor();
/** The text of the option that the field names as the active one. */
const activeOf = (page: Page): Promise<string | undefined> =>
  page.evaluate(() => {
    const id = document.querySelector('dialog [role=combobox]')!.getAttribute('aria-activedescendant')!;
    const selected = [...document.querySelectorAll('dialog [role=option][aria-selected=true]')];
    return selected.length === 1 && selected[0]!.id === id ? selected[0]!.textContent! : undefined;
  });

describe.runIf(hasChromium)('The palette of the console', () => {
  beforeAll(start);
  atEnd(stop);

  it('opens the account whose email the operator begins', async () => {
    const { body } = await register('ada@lovelace.example');
    const page = await openPalette();
    await page.keyboard.type('ADA@');
    await hit(page, /^ada@lovelace.example\s*account$/).waitFor();
    await page.keyboard.press('Enter');
    await details(page, 'ada@lovelace.example');
    expect(await page.evaluate(() => document.activeElement!.id)).toBe('main');
    expect(await page.evaluate(() => location.hash)).toBe(`#accounts?search=${body.account.id}&row=${body.account.id}`);
  });

  it('opens a server by its host name or its order number', async () => {
    const number = await order('mill.example.org');
    for (const text of ['mill.example.org', number.toLowerCase()]) {
      const page = await openPalette();
      await page.keyboard.type(text);
      await hit(page, new RegExp(`^mill.example.org\\s*server ${number}$`)).waitFor();
      await page.keyboard.press('Enter');
      await details(page, number);
    }
  });

  it('offers the actions of the open row, as its buttons do', async () => {
    const { body } = await register('suspect@mail.example');
    const { id } = body.account;
    const page = await openPage(operatorToken, `accounts?search=${id}&row=${id}`);
    await details(page, 'suspect@mail.example');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('suspen');
    expect((await linesOf(page))[0]).toBe('Suspend suspect@mail.example');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('heading', { name: 'Suspend suspect@mail.example' }).waitFor();
    await page.keyboard.press('Escape');
    // A dialog that has no role any more can still stand open in the document.
    await page.waitForFunction(() => !document.querySelector('dialog'));
    await page.keyboard.press('Escape');
    await page.getByRole('complementary').waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
    await page.keyboard.type('suspen');
    expect((await linesOf(page)).filter((line) => line.startsWith('Suspend'))).toEqual([]);
  });

  it('offers no action of the open row that the role may not use', async () => {
    const { id } = (await register('seen@mail.example')).body.account;
    const ADD = 'mutation { addOperator(input: { name: "rea", role: READ_ONLY }) { token } }';
    const { token } = (await operator(ADD)).data.addOperator;
    const page = await openPage(token, `accounts?search=${id}&row=${id}`);
    await details(page, 'seen@mail.example');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('suspend');
    expect((await linesOf(page)).filter((line) => /seen@mail.example$/.test(line))).toEqual([]);
  });

  it('shows at most six things, above the searches, and asks once', async () => {
    for (let n = 0; n < 8; n++) await register(`zzyzx${n}@mail.example`);
    const page = await openPalette();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(textOf(request)!));
    await stopClock(page);
    for (const letter of 'zzyzx') {
      await page.keyboard.type(letter);
      await page.clock.runFor(190);
    }
    expect(asked.filter(Boolean)).toEqual([]);
    await page.clock.runFor(10);
    await hit(page, /account$/)
      .first()
      .waitFor();
    const options = await linesOf(page);
    expect(options).toEqual([
      ...[7, 6, 5, 4, 3, 2].map((n) => `zzyzx${n}@mail.example account`),
      'zzyzx accounts by anything',
      'zzyzx servers by host name',
    ]);
    await page.keyboard.press('Backspace');
    await page.keyboard.press('Backspace');
    await page.keyboard.press('Backspace');
    await page.clock.runFor(200);
    expect(asked.filter(Boolean)).toEqual(['zzyzx']);
  });

  it('keeps the command that the operator has chosen when things arrive', async () => {
    await order('foundry');
    const page = await openPalette();
    const held: Route[] = [];
    await page.route('**/graphql', (route) =>
      textOf(route.request()) === 'foundry' ? void held.push(route) : route.continue(),
    );
    await field(page).fill('foundry');
    await expect.poll(() => held.length).toBe(1);
    await page.keyboard.press('ArrowUp');
    expect(await activeOf(page)).toMatch(/servers by host name$/);
    await held[0]!.continue();
    await hit(page, /server SRV-/).waitFor();
    expect(await activeOf(page)).toMatch(/servers by host name$/);
    await page.evaluate(axe.source);
    const faults = await page.evaluate(async () => {
      const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run();
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
    });
    expect(faults).toEqual([]);
  });

  it('shows the chosen command in a window that is shorter than the list', async () => {
    const page = await openPalette({ viewport: { width: 390, height: 300 } });
    const last = page.getByRole('dialog').getByRole('option').last();
    const isSeen = () =>
      last.evaluate((option) => {
        const [row, list] = [option, option.closest('dialog')!].map((element) => element.getBoundingClientRect());
        return row!.bottom <= list!.bottom;
      });
    expect(await isSeen()).toBe(false);
    await page.keyboard.press('ArrowUp');
    await expect.poll(isSeen).toBe(true);
  });

  it('shows no answer for a text that the operator has changed meanwhile', async () => {
    await register('first-text@mail.example');
    await register('other-text@mail.example');
    const page = await openPalette();
    const held: Route[] = [];
    await page.route('**/graphql', (route) =>
      textOf(route.request()) === 'first-text' ? void held.push(route) : route.continue(),
    );
    await field(page).fill('first-text');
    await expect.poll(() => held.length).toBe(1);
    await field(page).fill('other-text');
    await hit(page, /^other-text@mail.example/).waitFor();
    const answered = page.waitForResponse((response) => textOf(response.request()) === 'first-text');
    await held[0]!.continue();
    await (await answered).finished();
    await page.waitForTimeout(300);
    expect(await hit(page, /^first-text/).count()).toBe(0);
    expect(await hit(page, /^other-text@mail.example/).count()).toBe(1);
  });

  it.each(['refused', 'lost'])('offers the same lists when the answer is %s', async (how) => {
    const page = await openPalette();
    await page.route('**/graphql', (route) => {
      if (!textOf(route.request())) return route.continue();
      return how === 'lost'
        ? route.abort('connectionreset')
        : route.fulfill({ json: { errors: [{ message: 'No.', extensions: { code: 'internal_error' } }] } });
    });
    const asked = page.waitForRequest((request) => textOf(request) === 'lost.example.org');
    await field(page).fill('lost.example.org');
    await asked;
    await page.waitForTimeout(300);
    expect(await linesOf(page)).toEqual([
      'lost.example.org accounts by anything',
      'lost.example.org servers by host name',
    ]);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Accounts' }).waitFor();
  });
});
