/**
 * `npm run bench:console`: measures how long an operator waits for the first page and for a list, with 10,000 servers. It also
 * measures the processor time of Debian's chromium while 200 servers change in each second. The exit code is 1 only if the benchmark itself fails.
 */
import { execFileSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium, type Page } from 'playwright-core';
import { Database } from '../../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../../entities/database/embedded/postgres.ts';
import { newId } from '../../../entities/ids.ts';
import { newFolder, removeFolder, spawnService } from '../../setup/spawn.ts';
import { median, print } from '../../../bench/figure.ts';
import { cpuSeconds } from '../../../bench/report.ts';
import { run, stops } from '../../../bench/run.ts';
import { newOrderer } from '../../../bench/seed.ts';

const SERVERS = 10_000;
const CHANGES_PER_SECOND = 200;
/** The changes of one transaction. */
const BATCH = 10;
const ROUNDS = 9;
const SECONDS = 10;
/** The parts of the list that one round has read, of 50 servers each. */
const PARTS = 20;
const [SHOWN_BAR_MS, CPU_BAR] = [300, 0.5];

/** The messages that the page has received over its WebSocket, and its requests. */
const heard = { messages: 0, requests: 0 };

await run(bench);

async function bench() {
  const folder = newFolder();
  stops.push(() => removeFolder(folder));
  const postgres = await startEmbeddedPostgres(folder, []);
  stops.push(() => removeFolder(postgres.folder), postgres.stop);
  await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl }).then((opened) => opened.close());
  const db = await Database.open(postgres.ownerUrl, { poolSize: 2 });
  stops.push(() => db.close());
  const environment = { DATA_DIR: folder, DATABASE_URL: postgres.url, RATE_LIMIT_STORE: 'memory' };
  const service = await spawnService(environment);
  stops.push(service.stop);
  const { id: accountId } = await newOrderer(db);
  const numbers = await sell(db, accountId);
  const { page, pid } = await open(new URL(service.graphql).origin, service.operatorToken);
  await waitForPages(page);

  const changing = changes(db, accountId, numbers);
  stops.push(changing.end);
  await go(page, '');
  await measure('the first page', pid);
  await go(page, 'servers');
  await page.getByRole('gridcell').first().waitFor();
  await measure(`a list of 50 servers`, pid);
  for (let part = 1; part < PARTS; part++) {
    const rows = await page.getByRole('grid').getAttribute('aria-rowcount');
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.locator(`[role=grid]:not([aria-rowcount="${rows}"])`).waitFor();
  }
  await measure(`a list of ${50 * PARTS} servers`, pid);
  await go(page, `accounts?search=${accountId}&row=${accountId}`);
  await page.getByRole('heading', { name: 'Servers' }).waitFor();
  await measure('the details of their account', pid);
}

/** Adds the servers, each with an event, all of one account. @returns their order numbers */
async function sell(db: Database, accountId: string): Promise<string[]> {
  const ids = (prefix: 'srv' | 'evt') => Array.from({ length: SERVERS }, () => newId(prefix));
  const rows = 'unnest($1::text[]) with ordinality as given(id, n)';
  await db.query(
    `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, labels, price_month_micros,
        setup_fee_micros, paid_until)
      select id, $2, 'SRV-BENCH' || n, 'VPS', 'RUNNING', 'web-' || n, 'vps-1', 'zrh', 'debian-13', '{}', 6000000, 0,
        now() + interval '20 days' from ${rows}`,
    [ids('srv'), accountId],
  );
  await db.query(
    `insert into event (id, account_id, type, subject, data) select id, $2, 'server.running', 'SRV-BENCH' || n, '{}' from ${rows}`,
    [ids('evt'), accountId],
  );
  await db.query('vacuum (analyze) server, event');
  return Array.from({ length: SERVERS }, (_, index) => `SRV-BENCH${index + 1}`);
}

/** Opens the console. @returns its page, and the process of the browser */
async function open(origin: string, token: string): Promise<{ page: Page; pid: number }> {
  const server = await chromium.launchServer({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  stops.push(() => server.close());
  const browser = await chromium.connect(server.wsEndpoint());
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.on('websocket', (socket) => socket.on('framereceived', () => heard.messages++));
  page.on('request', () => heard.requests++);
  await page.addInitScript(noteFirstPage);
  await page.goto(`${origin}/`);
  await page.getByRole('button', { name: 'Use a token' }).click();
  await page.getByLabel('Your operator token').fill(token);
  await page.getByRole('button', { name: 'Open the console' }).click();
  await page.getByRole('heading', { name: 'Today' }).waitFor();
  return { page, pid: server.process().pid! };
}

function go(page: Page, path: string): Promise<void> {
  return page.evaluate((hash) => {
    location.hash = hash;
  }, path);
}

/** Measures how long pages take: a list within the console, and the first page of a console that loads. */
async function waitForPages(page: Page): Promise<void> {
  const [rows, loads]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    await go(page, 'audit');
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
    rows.push(await page.evaluate(timed));
    await go(page, '');
    await page.reload();
    loads.push(await shownAt(page));
    await page.getByText('Reading …').waitFor({ state: 'detached' });
  }
  printTimes(`ms until the list has rows, of ${SERVERS} servers`, rows);
  printTimes('ms from the navigation to the figures and orders of the first page', loads);
}

/** Prints the median against its bar, with the spread and the load of the machine. */
function printTimes(name: string, times: number[]): void {
  print({ name, ratio: median(times), bar: SHOWN_BAR_MS });
  const [least, most] = [Math.min(...times), Math.max(...times)].map(Math.round);
  console.log(`  ${least} to ${most} ms in ${times.length} rounds, at a load of ${loadavg()[0]!.toFixed(1)}`);
}

/** Notes the milliseconds from the navigation until the first page has both figures and orders. It runs before the console does. */
function noteFirstPage(): void {
  new MutationObserver((_, observer) => {
    if (!document.querySelector('.figures a') || !document.querySelector('.latest li')) return;
    observer.disconnect();
    performance.mark('first page');
  }).observe(document, { childList: true, subtree: true });
}
async function shownAt(page: Page): Promise<number> {
  const mark = () => performance.getEntriesByName('first page')[0]?.startTime;
  return (await (await page.waitForFunction(mark)).jsonValue())!;
}

/** Goes to the servers, within the page. @returns the milliseconds until the page has drawn the first cell */
function timed(): Promise<number> {
  return new Promise((resolve) => {
    const began = performance.now();
    new MutationObserver((_, observer) => {
      if (location.hash !== '#servers' || !document.querySelector('[role=gridcell]')) return;
      observer.disconnect();
      resolve(performance.now() - began);
    }).observe(document.body, { childList: true, subtree: true });
    location.hash = 'servers';
  });
}

/** Changes servers at random, until its end. */
function changes(db: Database, accountId: string, numbers: readonly string[]) {
  let isOver = false;
  let made = 0;
  const began = performance.now();
  const work = (async () => {
    for (; !isOver; made += BATCH) {
      await sleep(Math.max(1, began + (made * 1000) / CHANGES_PER_SECOND - performance.now()));
      const some = Array.from({ length: BATCH }, () => numbers[Math.floor(Math.random() * numbers.length)]!);
      await db.transaction(async (tx) => {
        await tx.query('update server set updated_at = now() where order_number = any($1)', [some]);
        tx.changed(...some.map((id) => ({ kind: 'server', accountId, id }) as const));
      });
    }
  })();
  const end = async () => {
    isOver = true;
    await work;
    console.log(`${((made * 1000) / (performance.now() - began)).toFixed(0)} changes a second.`);
  };
  return { end };
}

/** Measures the processor time of the browser, in cores. */
async function measure(name: string, pid: number): Promise<void> {
  const used = () => processesOf(pid).reduce((sum, one) => sum + cpuSeconds(one), 0);
  const [before, began, { messages, requests }] = [used(), performance.now(), { ...heard }];
  await sleep(SECONDS * 1000);
  const seconds = (performance.now() - began) / 1000;
  print({ name: `cores of chromium with ${name}`, ratio: (used() - before) / seconds, bar: CPU_BAR });
  const perSecond = (count: number) => (count / seconds).toFixed(1);
  console.log(
    `  ${perSecond(heard.messages - messages)} messages and ${perSecond(heard.requests - requests)} requests a second`,
  );
}

/** The process and all below it. */
function processesOf(pid: number): number[] {
  const pairs = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const below = (one: number): number[] => [
    one,
    ...pairs.filter(([, parent]) => parent === one).flatMap(([id]) => below(id!)),
  ];
  return below(pid);
}
