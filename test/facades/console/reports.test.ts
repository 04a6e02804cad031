/** The reports of the console: their plots, and their rows as CSV. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { csvOf } from '../../../facades/console/src/list/download.ts';
import { groupsOf } from '../../../facades/console/src/list/groups.ts';
import { PAGES } from '../../../facades/console/src/pages/index.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { consoleAt } from './open-page.ts';

const { graphqlUrl, newAccount, operator, operatorToken } = await startFreehold();
const { start, stop, openPage } = consoleAt(new URL(graphqlUrl).origin);
const plotOf = (path: string) => PAGES.find((page) => page.path === path)!.plot!;

describe('The CSV of rows', () => {
  it('has each field of a row, and none that a spreadsheet runs as a formula', () => {
    const rows = [{ coin: '=HYPERLINK("x")', payments: -1, sources: [{ name: 'one' }], warning: null }];
    expect(csvOf(rows)).toBe(`coin,payments,sources,warning\r\n"'=HYPERLINK(""x"")",-1,"[{""name"":""one""}]",\r\n`);
  });
});

describe('A plot', () => {
  it('has the largest sum first, and the days in their order', () => {
    const coin = (coin: string, creditedUsd: number) => ({ coin, creditedUsd, paidOutUsd: 1 });
    expect(groupsOf(plotOf('income'), [coin('BTC', 5), coin('XMR', 20)]).map(({ name }) => name)).toEqual([
      'XMR',
      'BTC',
    ]);
    const day = (day: string, kind: string) => ({ day, kind, creditedUsd: 2, debitedUsd: 3 });
    const days = [day('2026-11-02T', 'refund'), day('2026-11-02T', 'hold'), day('2026-11-01T', 'topup')];
    expect(groupsOf(plotOf('daily-totals'), days)).toEqual([
      { name: '2026-11-01', values: [2, 0, 0] },
      { name: '2026-11-02', values: [0, 3, 2] },
    ]);
  });
});

describe.runIf(hasChromium)('A report of the console', () => {
  beforeAll(async () => {
    await start();
    const account = await newAccount();
    await account.topUp(30);
    const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'sold' });
    await account.rest('GET', `/v1/servers/${body.order_number}?wait_for=running`);
    const REMOVE =
      'mutation ($number: ID!) { removeServer(orderNumber: $number, reason: "x", refund: true) { refundedUsd } }';
    await operator(REMOVE, { number: body.order_number });
  });
  atEnd(stop);

  it.each(['sales', 'income', 'daily-totals'])('plots its rows above them: %s', async (path) => {
    const page = await openPage(operatorToken, path);
    const title = `${plotOf(path).title}. The table below has the numbers.`;
    await page.getByRole('img', { name: title }).getByText(/\$/).first().waitFor();
    await page.getByRole('grid').waitFor();
  });

  it('gives its rows as a file', async () => {
    const page = await openPage(operatorToken, 'income');
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const file = await saving;
    expect(file.suggestedFilename()).toBe('income.csv');
    expect(readFileSync(await file.path(), 'utf8')).toMatch(
      /^coin,payments,creditedUsd,paidOutUsd\r\nUSDC-BASE,1,30,0\r\n$/,
    );
  });
});
