/** The console in a real browser (Debian's chromium), as an operator uses it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { PAGES } from '../../../facades/console/src/pages/index.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { say } from '../../setup/say.ts';
import { consoleAt } from './open-page.ts';

const { graphqlUrl, newAccount, operator, operatorToken } = await startFreehold();
const ORIGIN = new URL(graphqlUrl).origin;
if (!hasChromium) say('Skipped: the console in a browser, because there is no chromium here.');

const { start, stop, open, openPage } = consoleAt(ORIGIN);
/** Makes entries of the operator's audit log. */
const act = async (count: number) => {
  for (let n = 0; n < count; n++) await added(`clerk ${n}`, 'READ_ONLY');
};
const added = async (name: string, role: string): Promise<string> =>
  (
    await operator(
      `mutation ($name: OperatorName!, $role: OperatorRole!) {
      addOperator(input: { name: $name, role: $role }) { token } }`,
      { name, role },
    )
  ).data.addOperator.token;
const order = async (hostname: string) => {
  const account = await newAccount();
  await account.fund(30);
  return (await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname })).body.order_number as string;
};

/** A way of TCP to the internal listener that a test can cut and mend. */
async function startWay() {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) return client.destroy();
    const service = connect(Number(new URL(ORIGIN).port), '127.0.0.1');
    for (const socket of [client, service]) {
      sockets.add(socket.on('error', () => {}));
      socket.on('close', () => [client, service].map((one) => one.destroy()));
    }
    return client.pipe(service).pipe(client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  const mend = () => {
    isCut = false;
  };
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut, mend };
}

describe.runIf(hasChromium)('The console', () => {
  beforeAll(start);
  atEnd(stop);

  it('refuses a wrong token in the words of the service', async () => {
    const page = await open('svc_op_wrong');
    await page.getByRole('alert').getByText('The credential is not valid.').waitFor();
  });

  it('shows the way to the first sale, with the act of each open step', async () => {
    const page = await openPage(operatorToken, '');
    await page.getByRole('heading', { name: 'To the first sale' }).waitFor();
    expect(await page.getByRole('link', { name: /An engine answers/ }).innerText()).toContain('Add the LXD or Incus');
    expect(await page.getByRole('link', { name: /A tier has stock/ }).innerText()).toContain('done');
  });

  it('shows the servers, their price, and the latest orders on the first page', async () => {
    const number = await order('latest');
    const page = await openPage(operatorToken, '');
    const figures = page.getByRole('region', { name: 'Figures' });
    await figures.getByRole('link', { name: /^Servers/ }).waitFor();
    await expect
      .poll(async () => await figures.getByRole('link', { name: /Revenue a month/ }).innerText())
      .toMatch(/\$\d+\.00/);
    await page.getByRole('link', { name: new RegExp(`latest ${number}`) }).click();
    await page.getByRole('complementary').getByRole('heading', { name: number }).waitFor();
  });

  it('keeps the rows that it has shown when something changes', async () => {
    await act(60);
    const page = await openPage(operatorToken, 'audit');
    await page.getByRole('grid').waitFor();
    const rows = async () => Number(await page.getByRole('grid').getAttribute('aria-rowcount'));
    await expect.poll(rows).toBe(51);
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(rows).toBeGreaterThan(51);
    const answered = page.waitForResponse((response) => response.url().endsWith('/graphql'));
    await order('change');
    await answered;
    await page.waitForTimeout(2_000);
    expect(await rows()).toBeGreaterThan(51);
  });

  it('shows an order at once, and deletes its server when the operator has typed the order number', async () => {
    const page = await openPage(operatorToken, 'servers');
    await page.getByRole('grid').waitFor();
    const number = await order('fresh');
    await page.getByRole('gridcell', { name: 'fresh' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Refund').selectOption('true');
    await form.getByLabel('Reason').fill('Spam');
    await form.getByLabel(/to confirm/).fill('SRV-WRONG');
    await form.getByRole('button', { name: 'Delete' }).click();
    await form.getByText(`Type ${number} to confirm.`).waitFor();
    await form.getByLabel(/to confirm/).fill(number);
    await form.getByRole('button', { name: 'Delete' }).click();
    // The list has no deleted servers, and a worker may be faster than the page.
    await page.getByRole('gridcell', { name: 'fresh' }).waitFor({ state: 'detached' });
  });

  it('shows the servers and notes of an account in its details', async () => {
    const { id, email } = await newAccount();
    const NOTE = 'mutation ($id: ID!) { addNote(accountId: $id, text: "Pays late.") { id } }';
    await operator(NOTE, { id });
    const page = await openPage(operatorToken, `#accounts?search=${encodeURIComponent(email)}&row=${id}`);
    const details = page.getByRole('complementary', { name: 'Details' });
    await details.getByRole('heading', { name: 'Notes' }).waitFor();
    await details.getByText('Pays late.').waitFor();
  });

  it('adds an operator, and shows the token once', async () => {
    const page = await openPage(operatorToken, 'operators');
    await page.getByRole('button', { name: 'Add a tool' }).click();
    await page.getByLabel('Name').fill('zoe');
    await page.getByLabel('Role').selectOption('SUPPORT');
    await page.getByRole('dialog').getByRole('button', { name: 'Add a tool' }).click();
    const token = await page
      .getByRole('dialog')
      .getByText(/^svc_op_/)
      .innerText();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByRole('gridcell', { name: 'zoe' }).waitFor();
    await open(token).then((other) => other.getByText('zoe · support').waitFor());
  });

  it('shows the refusal of the service beside the form, and keeps what the operator typed', async () => {
    const page = await openPage(operatorToken, 'networks');
    await page.getByRole('button', { name: 'Add a network' }).click();
    const form = page.getByRole('dialog');
    for (const label of ['Region', 'Network', 'Gateway'])
      await form.getByLabel(label, { exact: false }).first().fill('nowhere');
    await form.getByRole('button', { name: 'Add a network' }).click();
    await form.getByRole('alert').waitFor();
    expect(await form.getByLabel('Region').inputValue()).toBe('nowhere');
  });

  it('has no button and no page that the role may not use', async () => {
    const page = await openPage(await added('reader', 'READ_ONLY'), 'operators');
    await page.getByRole('gridcell', { name: 'reader' }).click();
    await page.getByRole('complementary').waitFor();
    expect(await page.getByRole('button', { name: /Add an operator|End|Renew|Change the role/ }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Jobs by hand' }).count()).toBe(0);
  });

  it('tells of a lost connection, and shows what changed meanwhile when it is back', async () => {
    const way = await startWay();
    const page = await openPage(operatorToken, 'servers', {}, way.origin);
    const state = page.getByRole('navigation').getByRole('status');
    await state.getByText('live').waitFor();
    way.cut();
    await state.getByText('connection lost').waitFor();
    await order('meanwhile');
    way.mend();
    await state.getByText('live').waitFor();
    await page.getByRole('gridcell', { name: 'meanwhile' }).waitFor();
  });

  it('reads nothing while nothing changes', async () => {
    const page = await openPage(operatorToken, 'servers');
    await page.getByRole('navigation').getByText('live').waitFor();
    await page.waitForTimeout(3_000);
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.waitForTimeout(3_000);
    expect(requests).toEqual([]);
  });

  it('finds pages by the keyboard', async () => {
    const page = await openPage(operatorToken, 'servers');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('audit');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
  });

  it('finds pages without a keyboard in a narrow window', async () => {
    const page = await openPage(operatorToken, 'servers', { viewport: { width: 390, height: 844 } });
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('dialog').getByRole('combobox').fill('audit');
    await page.getByRole('option', { name: /^Audit log/ }).click();
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
  });

  it('shows the open page in a menu that is longer than the window', async () => {
    const page = await openPage(operatorToken, 'audit', { viewport: { width: 1280, height: 600 } });
    const link = page.getByRole('navigation').getByRole('link', { name: 'Audit log' });
    const beyond = async () => {
      const [box, menu] = [await link.boundingBox(), await page.locator('.pages').boundingBox()];
      return Math.trunc(box!.y + box!.height - (menu!.y + menu!.height));
    };
    await expect.poll(beyond).toBeLessThanOrEqual(0);
  });

  it.each(['light', 'dark'] as const)('has no serious fault of accessibility on any page (%s)', async (colorScheme) => {
    await order(`seen-${colorScheme}`);
    const page = await openPage(operatorToken, '', { colorScheme });
    await page.evaluate(axe.source);
    for (const { path, title } of [{ path: '', title: 'Today' }, ...PAGES]) {
      await page.evaluate((hash) => {
        location.hash = hash;
      }, path);
      await page.getByRole('heading', { name: title, level: 1 }).waitFor();
      await page.getByText('Reading …').waitFor({ state: 'detached' });
      expect([path, await faultsOf(page)]).toEqual([path, []]);
    }
  });

  it('fits a window of 360 pixels', async () => {
    const page = await openPage(operatorToken, '', { viewport: { width: 360, height: 740 } });
    for (const { path, title } of PAGES) {
      await page.evaluate((hash) => {
        location.hash = hash;
      }, path);
      await page.getByRole('heading', { name: title, level: 1 }).waitFor();
      expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([path, 360]);
    }
  });
});

/** The serious and critical faults that axe, which the page has loaded, finds in it. */
async function faultsOf(page: Page): Promise<string[]> {
  const found = await page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run();
    return violations.map(({ impact, id, nodes }) => ({ impact, text: `${id}: ${nodes[0]?.html}` }));
  });
  return found.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ text }) => text);
}
