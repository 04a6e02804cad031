/** The first page of the console in a real browser (Debian's chromium). */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasChromium } from '../../setup/chromium.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { say } from '../../setup/say.ts';
import { consoleAt, logIn } from './open-page.ts';

const { graphqlUrl, newAccount, operatorToken } = await startFreehold();
if (!hasChromium) say('Skipped: the first page in a browser, because there is no chromium here.');

const { start, stop, visit } = consoleAt(new URL(graphqlUrl).origin);

/** Opens the first page. @returns it with its documents, of which those with the word wait until the end of the page */
async function openFirst(held?: string): Promise<{ page: Page; documents: string[] }> {
  const page = await visit();
  const documents: string[] = [];
  await page.route('**/graphql', (route) => {
    const { query } = route.request().postDataJSON();
    documents.push(query);
    return held && query.includes(held) ? undefined : route.continue();
  });
  await logIn(page, operatorToken);
  return { page, documents };
}

describe.runIf(hasChromium)('The first page', () => {
  beforeAll(async () => {
    await start();
    const account = await newAccount();
    await account.fund(30);
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'first' });
  });
  afterAll(stop);

  it('shows the figures and the orders while a silent gateway holds up the matters', async () => {
    const { page } = await openFirst('openMatters');
    await page
      .getByRole('region', { name: 'Figures' })
      .getByRole('link', { name: /^Servers/ })
      .waitFor();
    await page
      .getByRole('region', { name: 'Latest orders' })
      .getByRole('link', { name: /^first/ })
      .waitFor();
    await page.getByText('Reading …').waitFor();
  });

  it('reads nothing of the way to the first sale when a customer has a server', async () => {
    const { page, documents } = await openFirst();
    await page.getByRole('region', { name: 'Latest orders' }).waitFor();
    await page.getByText('Reading …').waitFor({ state: 'detached' });
    expect(documents.filter((one) => one.includes('addressPools'))).toEqual([]);
  });
});
