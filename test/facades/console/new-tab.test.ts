/** A tab that the operator opens from a link of the console has the login of the console. Another tab has none. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { totpCode } from '../../setup/totp.ts';
import { consoleAt, installClock } from './open-page.ts';

const { graphqlUrl, operator, operatorToken } = await startFreehold();
const { start, stop, openPage } = consoleAt(new URL(graphqlUrl).origin);

/** Opens a link of the menu beside the page. */
async function openAside(page: Page, name: string, how: Parameters<Page['click']>[1]): Promise<Page> {
  const [opened] = await Promise.all([
    page.context().waitForEvent('page'),
    page.getByRole('navigation').getByRole('link', { name }).click(how),
  ]);
  return opened;
}
/** Signs a person in. @returns the token of the session */
async function signIn(): Promise<string> {
  const INVITE = 'mutation { inviteOperator(input: { name: "lou", role: SUPPORT }) { code } }';
  const { code } = (await operator(INVITE)).data.inviteOperator;
  const post = async (operationName: string, variables: object) => {
    const body = JSON.stringify({ operationName, variables });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(new URL('/sign-in', graphqlUrl), { method: 'POST', headers, body });
    return (await answer.json()).data[operationName];
  };
  const { secret } = await post('openInvitation', { code });
  const given = { code, password: 'a heron on the roof', totpCode: totpCode(secret) };
  return (await post('acceptInvitation', given)).token;
}
const loginOf = (page: Page) => page.getByRole('button', { name: 'Use a token' });

describe.runIf(hasChromium)('A tab', () => {
  beforeAll(start);
  atEnd(stop);

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

  it('ends no session that the operator uses in another tab, and ends it when no tab is in use', async () => {
    const page = await openPage(await signIn(), 'servers');
    await installClock(page);
    // The timers that the page began before have the real clock.
    await page.reload();
    await page.getByRole('heading', { name: 'Servers' }).waitFor();
    const opened = await openAside(page, 'Messages', { modifiers: ['Control'] });
    await opened.getByRole('heading', { name: 'Messages' }).waitFor();
    await page.clock.fastForward('20:00');
    await opened.mouse.move(200, 200);
    await page.clock.fastForward('20:00');
    await page.clock.runFor('01:00');
    await page.waitForTimeout(1_500);
    await page.getByRole('heading', { name: 'Servers' }).waitFor({ timeout: 5_000 });
    await page.clock.fastForward('31:00');
    await page.clock.runFor('02:00');
    await loginOf(page).waitFor();
    await loginOf(opened).waitFor();
  });
});
