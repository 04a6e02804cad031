/** The audit log of the console begins without plain requests, and finds the acts of an operator. */
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { consoleAt } from './open-page.ts';

const { graphqlUrl, newAccount, operator, operatorToken } = await startFreehold();
const { start, stop, openPage } = consoleAt(new URL(graphqlUrl).origin);

describe.runIf(hasChromium)('The audit log of the console', () => {
  beforeAll(async () => {
    await start();
    const { id } = await newAccount();
    await operator('mutation { addOperator(input: { name: "ann", role: SUPPORT }) { token } }');
    await operator('mutation ($id: ID!) { suspendAccount(id: $id, reason: "spam") { id } }', { id });
  });
  atEnd(stop);

  it('begins without plain requests, and shows them when the operator asks', async () => {
    const page = await openPage(operatorToken, 'audit');
    await page.getByRole('gridcell', { name: 'account.suspended' }).waitFor();
    expect(await page.getByRole('gridcell', { name: 'api.request' }).count()).toBe(0);
    expect(await page.getByLabel('Kind').inputValue()).toBe('ACT');
    await page.getByLabel('Kind').selectOption('all');
    await page.getByRole('gridcell', { name: 'api.request' }).first().waitFor();
    await page.getByRole('gridcell', { name: 'account.suspended' }).waitFor();
    expect(await page.evaluate(() => location.hash)).toBe('#audit?kind=all');
    await page.reload();
    await expect.poll(() => page.getByLabel('Kind').inputValue()).toBe('all');
  });

  it('offers the operators by their names, and the first owner', async () => {
    const page = await openPage(operatorToken, 'audit');
    const field = page.getByLabel(/^Operator/);
    await expect
      .poll(() => field.locator('option').allInnerTexts())
      .toEqual(['all', 'ann', 'operator (the first owner)']);
    await page.getByRole('gridcell', { name: 'account.suspended' }).waitFor();
    await field.selectOption('ann');
    await page.getByText('No entry fits.').waitFor();
    await field.selectOption('operator (the first owner)');
    await page.getByRole('gridcell', { name: 'account.suspended' }).waitFor();
  });

  it('finds actions by their beginning while the operator types', async () => {
    const page = await openPage(operatorToken, 'audit');
    await page.getByLabel('Action').fill('account.sus');
    await page.getByRole('gridcell', { name: 'operator.updated' }).waitFor({ state: 'detached' });
    await page.getByRole('gridcell', { name: 'account.suspended' }).waitFor();
  });
});
