/** A person accepts an invitation in the console, signs out, and signs in again. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { encode } from 'uqr';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { totpCode } from '../../setup/totp.ts';
import { consoleAt } from './open-page.ts';

const { db, graphqlUrl, operator } = await startFreehold();
const { start, stop, visit } = consoleAt(new URL(graphqlUrl).origin);
const PASSWORD = 'a heron on the roof';

/** The dark squares of the QR code in the page, as places from its corner. */
const squaresOf = async (page: Page): Promise<string[]> => {
  const path = await page
    .getByRole('img', { name: /^QR code/ })
    .locator('path')
    .getAttribute('d');
  return [...path!.matchAll(/M(\d+ \d+)/g)].map(([, square]) => square!);
};
const squaresIn = (data: boolean[][]): string[] =>
  data.flatMap((line, y) => line.flatMap((isDark, x) => (isDark ? `${x} ${y}` : [])));

describe.runIf(hasChromium)('A person', () => {
  beforeAll(start);
  atEnd(stop);

  it('opens the console by an invitation, ends the session, and signs in with a code', async () => {
    const INVITE = 'mutation { inviteOperator(input: { name: "Ana Lee", role: OWNER }) { code operator { id } } }';
    const { code, operator: invited } = (await operator(INVITE)).data.inviteOperator;
    const page = await visit(`#invitation?code=${code}`);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('You are Ana Lee').waitFor();
    const secret = await page.locator('code').innerText();
    const link = await page.getByRole('link', { name: 'open it there' }).getAttribute('href');
    expect(await squaresOf(page)).toEqual(squaresIn(encode(link!, { border: 2 }).data));
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
    expect(violations.map(({ id }) => id)).toEqual([]);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByLabel('Code of the authenticator').fill(totpCode(secret));
    await page.getByRole('button', { name: 'Open the console' }).click();
    await page.getByText('Copy these recovery codes now.').waitFor();
    const [recoveryCode] = (await page.locator('code').innerText()).split('\n');
    await page.getByRole('button', { name: 'Open the console' }).click();
    await page.getByRole('link', { name: 'Sessions' }).click();
    await page.getByRole('gridcell', { name: 'Ana Lee' }).waitFor();
    expect(page.url()).not.toContain(code);

    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Name').waitFor();
    expect(await db.query('select from operator_session')).toEqual([]);
    await db.query('update totp set last_step = 0 where account_id = $1', [invited.id]);
    const signIn = async (password: string, totp = totpCode(secret)) => {
      await page.getByLabel('Name').fill('ana lee');
      await page.getByLabel('Password').fill(password);
      await page.getByLabel('Code of the authenticator').fill(totp);
      await page.getByRole('button', { name: 'Open the console' }).click();
    };
    await signIn('another password');
    await page.getByRole('alert').getByText('The name, the password or the code is wrong.').waitFor();
    await signIn(PASSWORD);
    await page.getByText('Ana Lee · owner').waitFor();

    await page.getByRole('link', { name: 'Sessions' }).click();
    await page.getByRole('button', { name: 'Get new recovery codes' }).click();
    await page.getByLabel('Second factor code').fill(recoveryCode!);
    await page.getByRole('dialog').getByRole('button', { name: 'Get new recovery codes' }).click();
    const shown = await page.getByRole('dialog').locator('code').innerText();
    const [newCode] = shown.match(/[0-9a-z]{4}-[0-9a-z]{4}/)!;
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByRole('button', { name: 'Log out' }).click();
    await signIn(PASSWORD, newCode);
    await page.getByText('Ana Lee · owner').waitFor();
  });

  it('types into the first field of each way at once', async () => {
    const page = await visit();
    for (const [way, field] of [
      ['Use a token', 'Your operator token'],
      ['Accept an invitation', 'Code of the invitation'],
      ['Sign in', 'Name'],
    ] as const) {
      await page.getByRole('button', { name: way, exact: true }).click();
      const isFocused = () => page.getByLabel(field).evaluate((element) => element === document.activeElement);
      await expect.poll(isFocused).toBe(true);
    }
  });

  it('is signed out after half an hour without a key or a pointer', async () => {
    const INVITE = 'mutation { inviteOperator(input: { name: "Bo", role: READ_ONLY }) { code } }';
    const { code } = (await operator(INVITE)).data.inviteOperator;
    const page = await visit(`#invitation?code=${code}`, 'clock');
    await page.getByRole('button', { name: 'Continue' }).click();
    const secret = await page.locator('code').innerText();
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByLabel('Code of the authenticator').fill(totpCode(secret));
    await page.getByRole('button', { name: 'Open the console' }).click();
    await page.getByText('Copy these recovery codes now.').waitFor();
    await page.getByRole('button', { name: 'Open the console' }).click();
    await page.getByText('Bo · read only').waitFor();
    await page.clock.fastForward('32:00');
    await page.getByLabel('Name').waitFor();
    expect(
      await db.query(`select from operator_session join operator on operator.id = operator_id where name = 'Bo'`),
    ).toEqual([]);
  });
});
