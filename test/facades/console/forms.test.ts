/** The forms of the console act on the row that the operator sees, and once. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { consoleAt, logIn, visitPath } from './open-page.ts';

const { db, graphqlUrl, newAccount, operator, operatorToken } = await startFreehold();
const { start, stop, openPage } = consoleAt(new URL(graphqlUrl).origin);

const stockOf = async (): Promise<{ serviceCode: string; region: string; total: number }[]> =>
  (await operator('{ stock { serviceCode region total } }')).data.stock;

/** Loses the first answer to a mutation. The service has carried it out. */
async function loseAnswer(page: Page, mutation: string): Promise<void> {
  let isLost = false;
  await page.route('**/graphql', async (route) => {
    const { query = '' } = route.request().postDataJSON() ?? {};
    if (isLost || !query.startsWith('mutation') || !query.includes(mutation)) return route.continue();
    isLost = true;
    await route.fetch();
    return route.abort('connectionreset');
  });
}

async function adjust(page: Page, amount: string): Promise<void> {
  const form = page.getByRole('dialog');
  await form.getByLabel('Amount').fill(amount);
  await form.getByLabel('Reason').fill('Goodwill');
  await form.getByRole('button', { name: 'Adjust the balance' }).click();
  await form.getByRole('button', { name: 'Yes, do it' }).click();
}
const openAdjustment = (page: Page) => page.getByRole('button', { name: 'Adjust the balance' }).click();
const closed = (page: Page) => page.getByRole('dialog').waitFor({ state: 'detached' });

/** Adjusts a balance by 25 USD, and loses the answer. The form stays open. */
async function unanswered() {
  const account = await newAccount();
  const page = await openPage(operatorToken, `accounts?search=${account.id}&row=${account.id}`);
  await loseAnswer(page, 'adjustBalance');
  await openAdjustment(page);
  await adjust(page, '25');
  await page.getByRole('dialog').getByText('does not answer').waitFor();
  return { account, page };
}

describe.runIf(hasChromium)('A form of the console', () => {
  beforeAll(start);
  atEnd(stop);

  it('changes the row that the operator chose, and no other row of the same tier', async () => {
    const before = (await stockOf()).filter(({ serviceCode }) => serviceCode === 'vps-1');
    const { region, total } = before[1]!;
    const page = await openPage(operatorToken, 'stock');
    await page
      .getByRole('row')
      .filter({ has: page.getByRole('gridcell', { name: 'vps-1', exact: true }) })
      .filter({ has: page.getByRole('gridcell', { name: region, exact: true }) })
      .click();
    await page.getByRole('complementary').getByText(region).first().waitFor();
    await page.getByRole('button', { name: 'Set the limit' }).click();
    const field = page.getByRole('dialog').getByLabel('Total');
    expect(await field.inputValue()).toBe(String(total));
    await field.fill('7');
    await page.getByRole('dialog').getByRole('button', { name: 'Set the limit' }).click();
    await closed(page);
    const after = (await stockOf()).filter(({ serviceCode }) => serviceCode === 'vps-1');
    expect(after).toEqual(before.map((one) => (one.region === region ? { ...one, total: 7 } : one)));
  });

  it('destroys what its title names, and asks for nothing but that name', async () => {
    for (const engine of ['fra', 'ams']) {
      await db.query(
        `insert into engine (name, kinds, needs_hosts, simulated, product, state)
         values ($1, '{VPS}', true, false, 'LXD', 'DRAINED')`,
        [engine],
      );
      await db.query(
        `insert into engine_image (name, engine, code, alias, virtual_machine, server, server_alias)
         values ($1, $2, 'alma-9', 'alma-9', false, 'https://images.example.org', 'alma')`,
        [`${engine}/alma-9`, engine],
      );
    }
    const page = await openPage(operatorToken, 'engine-images');
    await page.getByRole('gridcell', { name: 'fra' }).click();
    await page.getByRole('button', { name: 'Withdraw' }).click();
    const form = page.getByRole('dialog');
    await form.getByRole('heading', { name: 'Withdraw alma-9 fra' }).waitFor();
    expect(await form.locator('input, select, textarea').count()).toBe(1);
    await form.getByLabel(/to confirm/).fill('alma-9 fra');
    await form.getByRole('button', { name: 'Withdraw' }).click();
    await closed(page);
    const { data } = await operator('{ engineImages { engine state } }');
    expect(data.engineImages).toEqual([
      { engine: 'ams', state: 'IMPORTING' },
      { engine: 'fra', state: 'WITHDRAWING' },
    ]);
  });

  it('pays once when the operator sends it again after a lost answer', async () => {
    const { account, page } = await unanswered();
    expect(await account.balance()).toBe(25);
    await adjust(page, '25');
    await closed(page);
    expect(await account.balance()).toBe(25);
  });

  it('pays once when the operator opens it again after a lost answer, and again when that one has succeeded', async () => {
    const { account, page } = await unanswered();
    await page.reload();
    await openAdjustment(page);
    await adjust(page, '25');
    await closed(page);
    expect(await account.balance()).toBe(25);
    await openAdjustment(page);
    await adjust(page, '25');
    await closed(page);
    expect(await account.balance()).toBe(50);
  });

  it('tells the operator who sends other values after a lost answer that the service carried out the first ones', async () => {
    const { account, page } = await unanswered();
    await adjust(page, '30');
    await page.getByText('The service carried out the values that you sent first.').waitFor();
    expect(await account.balance()).toBe(25);
    await page.keyboard.press('Escape');
    await openAdjustment(page);
    await adjust(page, '5');
    await closed(page);
    expect(await account.balance()).toBe(30);
  });

  it('names the sum and the customer before it moves money, and moves it once the operator confirms', async () => {
    const account = await newAccount();
    const page = await openPage(operatorToken, `accounts?search=${account.id}&row=${account.id}`);
    await openAdjustment(page);
    const form = page.getByRole('dialog');
    await form.getByLabel('Amount').fill('2000');
    await form.getByLabel('Reason').fill('Goodwill');
    await form.getByRole('button', { name: 'Adjust the balance' }).click();
    await form.getByText(`This gives $2,000.00 to ${account.email}.`).waitFor();
    expect(await account.balance()).toBe(0);
    await form.getByLabel('Amount').fill('20');
    await form.getByRole('button', { name: 'Adjust the balance' }).click();
    await form.getByText(`This gives $20.00 to ${account.email}.`).waitFor();
    await form.getByRole('button', { name: 'Yes, do it' }).click();
    await page.getByRole('status').getByText('Adjust the balance: done').waitFor();
    await page.getByRole('complementary').getByText('Balance $20.00').waitFor({ timeout: 4_000 });
  });

  it('takes a second press of Enter at once for the first one', async () => {
    const account = await newAccount();
    const page = await openPage(operatorToken, `accounts?search=${account.id}&row=${account.id}`);
    await openAdjustment(page);
    const form = page.getByRole('dialog');
    await form.getByLabel('Amount').fill('20');
    await form.getByLabel('Reason').fill('Goodwill');
    await page.keyboard.press('Enter');
    await form.getByText(`This gives $20.00 to ${account.email}.`).waitFor();
    await page.keyboard.press('Enter');
    await form.getByRole('button', { name: 'Yes, do it', disabled: false }).waitFor();
    expect(await account.balance()).toBe(0);
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('Adjust the balance: done').waitFor();
  });

  it('counts the recipients before it writes to all accounts', async () => {
    const page = await openPage(operatorToken, 'messages');
    await page.getByRole('button', { name: 'Write a message' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Subject').fill('Maintenance');
    await form.getByLabel('Body').fill('Tonight.');
    await form.getByLabel('To', { exact: true }).selectOption('all accounts');
    await form.getByRole('button', { name: 'Write a message' }).click();
    const accounts = await db.query('select from account');
    await form.getByText(`This writes to ${accounts.length} accounts.`).waitFor();
    expect(await db.query('select from message')).toEqual([]);
  });

  it('sends a message to the one recipient that the operator chose', async () => {
    const account = await newAccount();
    const page = await openPage(operatorToken, 'messages');
    await page.getByRole('button', { name: 'Write a message' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('To', { exact: true }).selectOption('all with a server in a region');
    await form.getByLabel('Region').fill('ams');
    await form.getByLabel('To', { exact: true }).selectOption('one account');
    await form.getByLabel('Account ID').fill(account.id);
    await form.getByLabel('Subject').fill('Your question');
    await form.getByLabel('Body').fill('Yes.');
    await form.getByRole('button', { name: 'Write a message' }).click();
    await closed(page);
    const { data } = (await account.rest('GET', '/v1/account/messages')).body;
    expect(data.map(({ subject }: { subject: string }) => subject)).toEqual(['Your question']);
  });

  it('counts the recipients also where it began with one account', async () => {
    const account = await newAccount();
    const page = await openPage(operatorToken, `accounts?search=${account.id}&row=${account.id}`);
    await page.getByRole('button', { name: 'Write a message' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Subject').fill('Maintenance');
    await form.getByLabel('Body').fill('Tonight.');
    expect(await form.getByLabel('Account ID').inputValue()).toBe(account.id);
    await form.getByLabel('To', { exact: true }).selectOption('all accounts');
    expect(await form.getByLabel('Account ID').count()).toBe(0);
    await form.getByRole('button', { name: 'Write a message' }).click();
    await form.getByText(/^This writes to \d+ accounts\.$/).waitFor();
  });

  it('shows the words against a value at its field', async () => {
    const page = await openPage(operatorToken, 'cases');
    await page.getByRole('button', { name: 'Open a case' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Address').fill('192.0.2.250');
    await form.getByLabel(/^At/).fill('2026-01-01T00:00:00');
    await form.getByLabel('Deadline').fill('2026-01-02T00:00:00');
    await form.getByLabel('Source').fill('abuse@example.net');
    await form.getByLabel('Text').fill('It scans.');
    await form.getByRole('button', { name: 'Open a case' }).click();
    await form
      .locator('.field', { hasText: 'Deadline' })
      .getByRole('alert')
      .getByText('The deadline is over.')
      .waitFor();
    // The form moves the focus after it has shown the words.
    await eventually(() => form.getByLabel('Deadline').evaluate((field) => field === document.activeElement));
  });

  it('ends with the login, and so does the token that it shows', async () => {
    const added = await operator(
      'mutation { addOperator(input: { name: "leaver", role: OWNER }) { token operator { id } } }',
    );
    const { token, operator: leaver } = added.data.addOperator;
    const page = await openPage(token, 'operators');
    await page.getByRole('button', { name: 'Add a tool' }).click();
    await page.getByLabel('Name').fill('successor');
    await page.getByLabel('Role').selectOption('SUPPORT');
    await page.getByRole('dialog').getByRole('button', { name: 'Add a tool' }).click();
    await page.getByText(/^svc_op_/).waitFor();
    await page.keyboard.press('Escape');
    expect(await page.getByText(/^svc_op_/).count()).toBe(1);
    await operator(`mutation { endOperator(id: "${leaver.id}") { state } }`);
    await visitPath(page, 'audit');
    await page.getByLabel('Name').waitFor();
    await logIn(page, operatorToken);
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
    expect(await page.getByText(/^svc_op_/).count()).toBe(0);
  });
});
