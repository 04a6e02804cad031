/** The lists of the console show what strangers wrote, and what the service answers by mistake. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { consoleAt, visitPath } from './open-page.ts';

const { graphqlUrl, newAccount, operator, operatorToken } = await startFreehold();
const { start, stop, open, openPage } = consoleAt(new URL(graphqlUrl).origin);

/** Changes what the service answers, on the way to the page. */
// biome-ignore lint/suspicious/noExplicitAny: the answer to any document
const alterAnswers = (page: Page, alter: (answer: any) => void): Promise<unknown> =>
  page.route('**/graphql', async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    alter(json);
    await route.fulfill({ response, json });
  });

describe.runIf(hasChromium)('A list of the console', () => {
  beforeAll(start);
  atEnd(stop);

  it.each(['2026-11-28T10:00:00 my server', '2026-11-28T10:00:00.000Z', '9999-99-99T99:99:99Z'])(
    'shows the subject %s of a stranger as the stranger wrote it',
    async (subject) => {
      const account = await newAccount();
      await account.rest('POST', '/v1/account/messages', { subject, body: 'x' });
      const page = await openPage(operatorToken, `messages?accountId=${account.id}`);
      await page.getByRole('gridcell', { name: subject, exact: true }).click();
      await page.getByRole('complementary').getByText(subject, { exact: true }).waitFor();
    },
  );

  it('leads from the details of an account to each of its servers', async () => {
    const account = await newAccount();
    await account.fund(30);
    const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'linked' });
    const page = await openPage(operatorToken, `accounts?search=${account.id}&row=${account.id}`);
    const details = page.getByRole('complementary');
    await details.getByRole('listitem').getByRole('link', { name: body.order_number }).first().click();
    await details.getByRole('heading', { name: body.order_number }).waitFor();
  });

  it('offers yes and no for a filter that takes nothing else', async () => {
    const account = await newAccount();
    await account.rest('POST', '/v1/account/messages', { subject: 'unpaid', body: 'x' });
    const page = await openPage(operatorToken, `messages?accountId=${account.id}`);
    await page.getByRole('gridcell', { name: 'unpaid' }).waitFor();
    await page.getByLabel('Paid').selectOption('yes');
    await page.getByText('No message.').waitFor();
    await page.getByLabel('Paid').selectOption('no');
    await page.getByRole('gridcell', { name: 'unpaid' }).waitFor();
  });

  it('shows the direction of each message, and filters by it', async () => {
    const account = await newAccount();
    await account.rest('POST', '/v1/account/messages', { subject: 'From outside', body: 'x' });
    const SEND = `mutation ($id: ID!) { sendMessage(input: { accountId: $id, subject: "From us", body: "x" }) { id } }`;
    await operator(SEND, { id: account.id });
    const page = await openPage(operatorToken, `messages?accountId=${account.id}`);
    const sent = page.getByRole('row').filter({ hasText: 'From us' });
    await sent.getByRole('gridcell', { name: '↑ sent' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'From outside' }).getByText('↓ received').waitFor();
    await page.getByLabel(/^Direction/).selectOption('↓ received');
    await sent.waitFor({ state: 'detached' });
    await page.getByRole('gridcell', { name: 'From outside' }).waitFor();
  });

  it('shows the other cells and rows when it cannot show one', async () => {
    const account = await newAccount();
    for (const subject of ['first', 'second'])
      await account.rest('POST', '/v1/account/messages', { subject, body: 'x' });
    const page = await openPage(operatorToken, '');
    await alterAnswers(page, ({ data }) => {
      const newest = data?.messages?.data[0];
      // No text: `String` throws for it.
      if (newest) newest.from = { toString: null, valueOf: null };
    });
    await visitPath(page, `messages?accountId=${account.id}`);
    await page.getByRole('gridcell', { name: 'first' }).waitFor();
    await page.getByRole('gridcell', { name: 'second' }).waitFor();
    await page.getByText('Not shown').waitFor();
  });

  it('does not say that there are no rows when the service does not answer', async () => {
    const page = await openPage(operatorToken, '');
    await page.route('**/graphql', (route) => route.abort('connectionreset'));
    await visitPath(page, 'servers');
    await page.getByText('The service does not answer.').waitFor();
    expect(await page.getByText('No server yet.').count()).toBe(0);
  });

  it('leaves the menu alive when it cannot show a page', async () => {
    const page = await openPage(operatorToken, '');
    await alterAnswers(page, ({ data }) => {
      if (data?.stock?.[0]?.serviceCode) data.stock = [null];
    });
    await visitPath(page, 'stock');
    await page.getByText('The console cannot show this page').waitFor();
    await page.getByRole('link', { name: 'Payouts' }).click();
    await page.getByText('No payout.').waitFor();
  });

  it('says that a token with letters beyond ASCII is not valid', async () => {
    const page = await open('svc_op_zoë');
    await page.getByRole('alert').getByText('The token is not valid.').waitFor();
    expect(await page.getByText('does not answer').count()).toBe(0);
  });
});
