/**
 * `npm run screenshots`: pictures of the console for docs/operate/console.md, with a made-up day of a small company. A folder
 * as argument also gets each page, light and dark, 1280 and 390 pixels wide. It needs Debian's chromium.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { PAGES } from '../../../facades/console/src/pages/index.ts';
import { graphqlClient, newFolder, removeFolder, restClient, spawnService } from '../../setup/spawn.ts';

const DOCS = join(import.meta.dirname, '..', '..', '..', 'docs', 'operate', 'console');
const [, , all] = process.argv;
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } };
type Size = (typeof SIZES)[keyof typeof SIZES];
type Scheme = 'light' | 'dark';

const folder = newFolder();
const service = await spawnService({
  DATA_DIR: folder,
  SIMULATED_PAYMENT_SECONDS: '0.05',
  SIMULATED_PROVISION_SECONDS: '0.2',
});
const operator = graphqlClient(service.graphql, service.operatorToken);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const invitation = await liveADay();
  await picturesOfDocs(invitation);
  if (all) await picturesOfAll(all, invitation);
} finally {
  await browser.close();
  await service.stop();
  removeFolder(folder);
}

/** Lets three customers pay and order, and one of them write. An owner invites a person. @returns the code of the invitation */
async function liveADay(): Promise<string> {
  await addMachines();
  for (const [name, servers] of [
    ['ada', ['web-1', 'web-2', 'database', 'mail']],
    ['grace', ['runner', 'cache']],
    ['linus', ['git']],
  ] as const) {
    const { body } = await restClient(service.url)('POST', '/v1/auth/register', {
      email: `${name}@example.org`,
      password: `the long password of ${name}`,
    });
    const rest = restClient(service.url, body.tokens.access_token);
    await rest('POST', '/v1/billing/topups', { amount_usd: 60, crypto: 'USDC-BASE' });
    while (!(await rest('GET', '/v1/account/balance')).body.balance_usd) await wait();
    for (const hostname of servers)
      await rest('POST', '/v1/servers', { service_code: 'vps-1', hostname, os: 'debian-13' });
    await rest('POST', '/v1/billing/topups', { amount_usd: 25, crypto: 'USDC-BASE' });
    if (name === 'grace')
      await rest('POST', '/v1/account/messages', {
        subject: 'A second address for runner',
        body: 'May we have one more IPv4 address for the server runner?',
      });
  }
  for (const [name, role] of [
    ['mira', 'SUPPORT'],
    ['tomás', 'BILLING'],
  ])
    await operator(
      `mutation ($name: OperatorName!, $role: OperatorRole!) { addOperator(input: { name: $name, role: $role }) { token } }`,
      { name, role },
    );
  const { data } = await operator('{ servers { data { status } } }');
  for (let rows = data.servers.data; rows.some(({ status }: { status: string }) => status !== 'RUNNING'); await wait())
    rows = (await operator('{ servers { data { status } } }')).data.servers.data;
  await complain();
  const INVITE = 'mutation { inviteOperator(input: { name: "noor", role: SUPPORT }) { code } }';
  return (await operator(INVITE)).data.inviteOperator.code;
}

/** Adds hosts of each kind. */
async function addMachines(): Promise<void> {
  const size = { vcpus: 32, memoryMb: 131_072, diskGb: 2000, vcpuOvercommit: 2 };
  const box = { serviceCode: 'ded-1', mac: '52:54:00:ab:00:01', disks: ['nvme0n1', 'nvme1n1'] };
  for (const host of [
    { name: 'ams-1', region: 'ams', kind: 'VPS', ...size },
    { name: 'ams-2', region: 'ams', kind: 'VPS', ...size },
    { name: 'zrh-1', region: 'zrh', kind: 'VPS', ...size },
    { name: 'ams-box-1', region: 'ams', kind: 'DEDICATED', ...box },
  ])
    await change('($input: AddHostInput!) { addHost(input: $input) { name } }', { input: host });
}

/** Opens a case about the server `mail`, notes it, pays a customer back, and adjusts a balance. */
async function complain(): Promise<void> {
  const { data } = await operator('{ servers { data { hostname ipv4 accountId } } }');
  const { ipv4, accountId } = data.servers.data.find((server: { hostname: string }) => server.hostname === 'mail');
  const input = {
    ...{ address: ipv4, at: new Date().toISOString(), deadline: new Date(Date.now() + 2 * 86_400_000).toISOString() },
    ...{ source: 'abuse@isp.example', text: 'This address sends unsolicited mail to our customers since noon.' },
  };
  await change('($input: OpenCaseInput!) { openCase(input: $input) { id } }', { input });
  await change('($id: ID!, $text: MessageBody!) { addNote(accountId: $id, text: $text) { id } }', {
    ...{ id: accountId, text: 'Ada answers within an hour. The second complaint this year.' },
  });
  await change(
    '($id: ID!) { adjustBalance(accountId: $id, amountUsd: 5, key: "outage-1", reason: "Outage of 24 November") { accountId } }',
    { id: accountId },
  );
  await change(
    '($id: ID!, $to: Line!) { requestPayout(accountId: $id, address: $to, amountUsd: 10, coin: "USDC-BASE", key: "payout-1", reason: "Leaves us") { id } }',
    { id: accountId, to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
  );
}

/** Sends a mutation of the operator. @throws Error if the service refuses it */
async function change(text: string, variables: object): Promise<void> {
  const { errors } = await operator(`mutation ${text}`, variables);
  if (errors) throw new Error(`${text}: ${errors[0].message}`);
}

/** Opens the console without a login. @param path the fragment of the address */
async function visit(viewport: Size, colorScheme: Scheme, path = ''): Promise<Page> {
  const context = await browser.newContext({ viewport, colorScheme });
  const page = await context.newPage();
  await page.goto(`${new URL(service.graphql).origin}/#${path}`);
  return page;
}

/** Opens the console as the first owner. */
async function open(viewport: Size, colorScheme: Scheme): Promise<Page> {
  const page = await visit(viewport, colorScheme);
  await page.getByRole('button', { name: 'Use a token' }).click();
  await page.getByLabel('Your operator token').fill(service.operatorToken);
  await page.getByRole('button', { name: 'Open the console' }).click();
  await page.getByRole('heading', { name: 'Today' }).waitFor();
  return page;
}

async function show(page: Page, path: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, path);
  const title = PAGES.find((one) => one.path === path.split('?')[0])?.title ?? 'Today';
  await page.getByRole('heading', { name: title, level: 1 }).waitFor();
  await page.getByText('Reading …').waitFor({ state: 'detached' });
  await page.getByRole('status').filter({ hasText: 'live' }).first().waitFor({ state: 'attached' });
}

/** Takes a picture of the sign-in, and of the invitation after its code. */
async function picturesOfDoors(viewport: Size, colorScheme: Scheme, code: string, nameOf: (page: string) => string) {
  const page = await visit(viewport, colorScheme);
  await page.getByLabel('Code of the authenticator').waitFor();
  await page.screenshot({ path: nameOf('sign-in') });
  await page.context().close();
  const invited = await visit(viewport, colorScheme, `invitation?code=${code}`);
  await invited.getByRole('button', { name: 'Continue' }).click();
  await invited.getByText('You are noor').waitFor();
  await invited.screenshot({ path: nameOf('invitation') });
  await invited.context().close();
}

async function picturesOfDocs(invitation: string) {
  mkdirSync(DOCS, { recursive: true });
  await picturesOfDoors(SIZES.wide, 'light', invitation, (name) => join(DOCS, `${name}.png`));
  const page = await open(SIZES.wide, 'light');
  const picture = (name: string) => page.screenshot({ path: join(DOCS, `${name}.png`) });
  await page.getByRole('list').first().waitFor();
  await picture('today');
  await show(page, 'servers');
  await page.getByRole('gridcell', { name: 'web-1' }).click();
  await page.getByRole('complementary').waitFor();
  await picture('servers');
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').waitFor();
  await picture('delete');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('mess');
  await picture('palette');
}

async function picturesOfAll(into: string, invitation: string) {
  mkdirSync(into, { recursive: true });
  for (const [size, viewport] of Object.entries(SIZES))
    for (const scheme of ['light', 'dark'] as const) {
      const nameOf = (name: string) => join(into, `${name}-${scheme}-${size}.png`);
      await picturesOfDoors(viewport, scheme, invitation, nameOf);
      const page = await open(viewport, scheme);
      for (const path of ['', ...PAGES.map((one) => one.path)]) {
        await show(page, path);
        await page.screenshot({ path: nameOf(path || 'today') });
      }
      await page.context().close();
    }
}

function wait(): Promise<void> {
  return new Promise((resume) => setTimeout(resume, 100));
}
