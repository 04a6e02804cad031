/** The first page of the console in a real browser (Debian's chromium). */
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { say } from '../../setup/say.ts';
import { consoleAt, logIn, takeSockets } from './open-page.ts';

const { db, graphqlUrl, newAccount, operator, operatorToken } = await startFreehold();
if (!hasChromium) say('Skipped: the first page in a browser, because there is no chromium here.');

const { start, stop, visit } = consoleAt(new URL(graphqlUrl).origin);

/** Opens the first page. @returns it with its documents, and a way to hold those with a word until the end of the page */
async function openFirst(word?: string, token = operatorToken) {
  const page = await visit();
  const documents: string[] = [];
  let held = word;
  const hold = (other: string) => {
    held = other;
  };
  // No change of the service asks for the parts again.
  await takeSockets(page);
  await page.route('**/graphql', (route) => {
    const { query } = route.request().postDataJSON();
    documents.push(query);
    return held && query.includes(held) ? undefined : route.continue();
  });
  await logIn(page, token);
  return { page, documents, hold };
}

describe.runIf(hasChromium)('The first page', () => {
  beforeAll(async () => {
    await start();
    const account = await newAccount();
    await account.fund(30);
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'first' });
    await account.rest('POST', '/v1/account/messages', { subject: 'A second address', body: 'May we have one?' });
  });
  atEnd(stop);

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

  it('names the buttons of the console in the next step of a matter, and no field of GraphQL', async () => {
    const { page } = await openFirst();
    const matter = page.getByRole('link', { name: /^Message/ });
    await matter.getByText('answer by “Write a message”, and press “Mark as read”').waitFor();
  });

  it('shows the way to the first sale while all machines are simulated', async () => {
    const { page } = await openFirst();
    await page.getByRole('region', { name: 'Latest orders' }).waitFor();
    await page.getByRole('link', { name: 'An engine answers' }).waitFor();
  });

  it('reads nothing of the way to the first sale when a customer has a real server', async () => {
    await db.query(
      `insert into engine (name, kinds, needs_hosts, simulated, product, state)
       values ('osl', '{VPS}', true, false, 'LXD', 'DRAINED')`,
    );
    const { page, documents } = await openFirst();
    await page.getByRole('region', { name: 'Latest orders' }).waitFor();
    await page.getByText('Reading …').waitFor({ state: 'detached' });
    expect(documents.filter((one) => one.includes('addressPools'))).toEqual([]);
  });

  it('reads its parts anew before the service has told again who the operator is', async () => {
    const { page, documents, hold } = await openFirst();
    await page.getByRole('region', { name: 'Latest orders' }).waitFor();
    documents.length = 0;
    hold('currentOperator');
    await page.reload();
    const parts = ['openMatters', 'servers(', 'sales'];
    await expect.poll(() => parts.filter((part) => !documents.some((one) => one.includes(part)))).toEqual([]);
  });

  it('reads each of its parts once when the console loads', async () => {
    const { page, documents } = await openFirst();
    await page.getByRole('region', { name: 'Latest orders' }).waitFor();
    documents.length = 0;
    await page.reload();
    await page.getByRole('region', { name: 'Latest orders' }).waitFor();
    await page.getByText('Reading …').waitFor({ state: 'detached' });
    expect(documents.filter((one) => !one.includes('currentOperator')).length).toBe(3);
  });

  it('gives way to the sign-in when the token has ended meanwhile', async () => {
    const ADD = 'mutation { addOperator(input: { name: "rita", role: OWNER }) { token operator { id } } }';
    const { token, operator: rita } = (await operator(ADD)).data.addOperator;
    const { page } = await openFirst('', token);
    await page.getByText('rita · owner').waitFor();
    await operator('mutation ($id: ID!) { endOperator(id: $id) { state } }', rita);
    await page.reload();
    await page.getByLabel('Code of the authenticator').waitFor();
  });
});
