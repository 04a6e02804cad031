/** A long list of the console stays fresh without reading all of it again. */
import type { Page, Request, Route } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { newId, newOrderNumber } from '../../../entities/ids.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { consoleAt, logIn, takeSockets, visitPath } from './open-page.ts';

const { db, graphqlUrl, newAccount, operatorToken } = await startFreehold();
const { start, stop, visit, openPage } = consoleAt(new URL(graphqlUrl).origin);
/** The order numbers, the oldest first. */
const NUMBERS = Array.from({ length: 170 }, () => newOrderNumber('SRV'));
const [OLDEST, NEWEST] = [NUMBERS[0]!, NUMBERS.at(-1)!];
let accountId: string;

/** Adds running servers with an event each, as if customers had ordered them. */
const sell = (numbers: readonly string[], hostname: string) =>
  db.query(
    `with sold as (
        insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, labels,
          price_month_micros, setup_fee_micros)
        select id, $1, number, 'VPS', 'RUNNING', $4, 'vps-1', 'zrh', 'debian-13', '{}', 6000000, 0
        from unnest($2::text[], $3::text[]) as given(id, number) returning order_number)
      insert into event (id, account_id, type, subject, data)
      select 'evt_' || order_number, $1, 'server.running', order_number, '{}' from sold`,
    [accountId, numbers.map(() => newId('srv')), numbers, hostname],
  );
/** Renames a server, as a worker would change it. */
const rename = (orderNumber: string, hostname: string) =>
  db.transaction(async (tx) => {
    await tx.query('update server set hostname = $2 where order_number = $1', [orderNumber, hostname]);
    tx.changed({ kind: 'server', accountId, id: orderNumber });
  });
/** Opens the list, and shows all parts of it. */
async function openAll(): Promise<Page> {
  const page = await openPage(operatorToken, 'servers');
  const count = async () => Number(await page.getByRole('grid').getAttribute('aria-rowcount')) - 1;
  await page.getByRole('grid').waitFor();
  while ((await count()) < NUMBERS.length) {
    const before = await count();
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(count).toBeGreaterThan(before);
  }
  return page;
}
const scrollTo = (page: Page, part: number) =>
  page.locator('.rows').evaluate((rows, part) => rows.scrollTo(0, part * rows.scrollHeight), part);
const isReadOfServers = (request: Request) => (request.postDataJSON()?.query ?? '').includes('servers');
const readsOf = (page: Page): string[] => {
  const reads: string[] = [];
  page.on('request', (request) => {
    if (isReadOfServers(request)) reads.push(JSON.stringify(request.postDataJSON().variables));
  });
  return reads;
};

describe.runIf(hasChromium)('A long list of the console', () => {
  beforeAll(async () => {
    await start();
    ({ id: accountId } = await newAccount());
    await sell(NUMBERS, 'web');
  });
  atEnd(stop);

  it('reads the part again that the window shows, and another one when the operator scrolls to it', async () => {
    const page = await openAll();
    const reads = readsOf(page);
    await scrollTo(page, 0);
    await rename(NEWEST, 'first-renamed');
    await rename(OLDEST, 'last-renamed');
    await page.getByRole('gridcell', { name: 'first-renamed' }).waitFor();
    // The first part and that of the window, each perhaps again after the second change.
    expect(new Set(reads).size).toBeLessThanOrEqual(2);
    await scrollTo(page, 1);
    await page.getByRole('gridcell', { name: 'last-renamed' }).waitFor();
    expect(Number(await page.getByRole('grid').getAttribute('aria-rowcount')) - 1).toBe(NUMBERS.length);
  });

  it('shows a new row, and loses none of the others', async () => {
    const page = await openAll();
    const number = newOrderNumber('SRV');
    await sell([number], 'newest');
    await rename(number, 'newest-one');
    await rename(OLDEST, 'oldest-one');
    await scrollTo(page, 0);
    await page.getByRole('gridcell', { name: 'newest-one' }).waitFor();
    await expect.poll(() => page.getByRole('grid').getAttribute('aria-rowcount')).toBe(String(NUMBERS.length + 2));
  });

  it('keeps a part that the operator asked for while an older reading is under way', async () => {
    const page = await openPage(operatorToken, 'servers');
    const count = async () => Number(await page.getByRole('grid').getAttribute('aria-rowcount')) - 1;
    await expect.poll(count).toBe(50);
    const held: Route[] = [];
    await page.route('**/graphql', (route) =>
      held.length || !isReadOfServers(route.request()) ? route.continue() : held.push(route),
    );
    await rename(NEWEST, 'renamed-while-held');
    await expect.poll(() => held.length).toBe(1);
    await page.getByRole('button', { name: 'Show more' }).click();
    // The page may have read the next part already, or wait with it.
    await page.waitForTimeout(1_000);
    await held[0]!.continue();
    await page.getByRole('gridcell', { name: 'renamed-while-held' }).waitFor();
    await expect.poll(count).toBe(100);
  });

  it('watches again after the service has ended a subscription with a fault', async () => {
    let endAll = () => {};
    const page = await visit();
    await takeSockets(page, (socket) => {
      const service = socket.connectToServer();
      const ids = new Set<string>();
      socket.onMessage((message) => {
        const { type, id } = JSON.parse(String(message));
        if (type === 'subscribe') ids.add(id);
        service.send(message);
      });
      endAll = () => {
        for (const id of ids) {
          service.send(JSON.stringify({ type: 'complete', id }));
          socket.send(JSON.stringify({ type: 'error', id, payload: [{ message: 'Try again later.' }] }));
        }
      };
    });
    await logIn(page, operatorToken);
    await page.getByRole('navigation').getByText('live').waitFor();
    await visitPath(page, 'servers');
    await page.getByRole('grid').waitFor();
    const reads = readsOf(page);
    for (let before = -1; before < reads.length; await page.waitForTimeout(3_000)) before = reads.length;
    endAll();
    await rename(NEWEST, 'after-the-fault');
    await page.getByRole('gridcell', { name: 'after-the-fault' }).waitFor();
  });

  it('opens a row of a link that it has not read', async () => {
    const page = await openPage(operatorToken, `servers?row=${OLDEST}`);
    await page.getByRole('complementary').getByRole('heading', { name: OLDEST }).waitFor();
    await rename(OLDEST, 'renamed-meanwhile');
    await page.getByRole('complementary').getByText('renamed-meanwhile').waitFor();
  });
});
