/**
 * `npm run bench:webhooks`: measures how much a webhook slows an order. Two accounts order from the same service in
 * turns. One has a webhook with a receiver that answers at once. A first run has no worker, a second run has one that
 * delivers messages meanwhile. The exit code is 1 only if the benchmark itself fails.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from '../entities/database/database.ts';
import { startEmbeddedPostgres } from '../entities/database/embedded/postgres.ts';
import { verifyBooks } from '../entities/payments/books.ts';
import { type Receiver, startReceiver } from '../test/setup/receiver.ts';
import { newFolder, type RunningService, removeFolder, restClient, spawnService } from '../test/setup/spawn.ts';
import { median } from './figure.ts';
import { load, prepare } from './load.ts';
import { run, stops } from './run.ts';
import { addRoom, clear, newOrderer, type SeededAccount } from './seed.ts';

const ROUNDS = 15;
const SLICE_SECONDS = 0.5;
/** Rounds that warm up compilers, pools and caches; not counted. */
const ROUNDS_BEFORE = 2;
const CONNECTIONS = 16;
const BAR = 0.95;
const PATIENCE_SECONDS = 120;
const ORDER = { service_code: 'vps-1', region: 'zrh', hostname: 'web.example.org' };

/** The service under test and its two accounts. */
interface World {
  db: Database;
  port: number;
  told: SeededAccount;
  untold: SeededAccount;
}

await run(bench);

async function bench() {
  const folder = newFolder();
  stops.push(() => removeFolder(folder));
  // Autovacuum would slow some slices only.
  const postgres = await startEmbeddedPostgres(folder, ['autovacuum=off']);
  stops.push(() => removeFolder(postgres.folder), postgres.stop);
  await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl }).then((opened) => opened.close());
  // The benchmark deletes rows between its slices, which the role of the service may not.
  const db = await Database.open(postgres.ownerUrl, { poolSize: 1 });
  stops.push(() => db.close());
  const receiver = await startReceiver();
  stops.push(() => receiver.close());
  const environment = {
    ...{ DATA_DIR: folder, DATABASE_URL: postgres.url, RATE_LIMIT_STORE: 'memory', LIMIT_SERVERS: '1000000' },
    ...{ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', SIMULATED_PROVISION_SECONDS: '0' },
  };
  const start = async (roles: string): Promise<RunningService> => {
    const service = await spawnService({ ...environment, ROLES: roles });
    stops.push(service.stop);
    return service;
  };
  const { url } = await start('api');
  await addRoom(db);
  const world = { db, port: Number(new URL(url).port), told: await newOrderer(db), untold: await newOrderer(db) };
  const webhook = { url: receiver.url, event_filter: '*' };
  const { status, body } = await restClient(url, world.told.credential)('POST', '/v1/webhooks', webhook);
  assert.equal(status, 200, JSON.stringify(body));

  console.log(
    `Orders of an account with a webhook, relative to one without: ${ROUNDS} rounds of ${SLICE_SECONDS} s each, ` +
      `${CONNECTIONS} connections.\n`,
  );
  report('while no worker runs', await compare(world, async () => {}));
  // A worker fails the oldest of more than 1,000 deliveries that wait for one webhook.
  await db.query('delete from webhook_delivery');
  await start('worker');
  await delivered(db, receiver);
  report('while a worker makes servers and sends', await compare(world, () => settled(db, receiver)));
  assert.ok((await verifyBooks(db)).balanced, 'The books do not balance.');
}

/** @returns the ratios of the rounds. @param settle waits until the work of a slice has ended */
async function compare(world: World, settle: () => Promise<void>): Promise<number[]> {
  const { told, untold } = world;
  const ratios: number[] = [];
  for (let round = 1 - ROUNDS_BEFORE; round <= ROUNDS; round++) {
    const perSecond = new Map<SeededAccount, number>();
    for (const account of round % 2 ? [told, untold] : [untold, told])
      perSecond.set(account, await slice(world, account, settle));
    if (round > 0) ratios.push(perSecond.get(told)! / perSecond.get(untold)!);
  }
  return ratios;
}

/** @returns orders per second. @throws Error if an answer is wrong, or an order or its message is missing */
async function slice({ db, port, told }: World, account: SeededAccount, settle: () => Promise<void>): Promise<number> {
  const before = await messages(db);
  const { requests, seconds } = await load({
    port,
    request: prepare('POST', '/v1/servers', account.credential, ORDER),
    expects: (answer) => answer.includes('"status":"pending"'),
    connections: CONNECTIONS,
    seconds: SLICE_SECONDS,
  });
  await settle();
  const written = (await messages(db)) - before;
  if (account === told) assert.ok(written >= requests, 'Not every order was told of.');
  else assert.equal(written, 0, 'The account without a webhook was told of something.');
  assert.equal(await clear(db, account), requests, 'Not every order that was answered is there.');
  await db.query('update address set held_by = null, free_at = null where held_by is not null');
  await db.query('vacuum (analyze) webhook_delivery, event, address');
  return requests / seconds;
}

async function messages(db: Database): Promise<number> {
  const [found] = await db.query<{ count: number }>('select count(*)::int as count from webhook_delivery');
  return found!.count;
}

/** Waits until a worker has made every server and sent every message. */
async function settled(db: Database, receiver: Receiver): Promise<void> {
  await until(
    'Not every server runs',
    async () => !(await db.query(`select from server where status <> 'RUNNING'`)).length,
  );
  await delivered(db, receiver);
}

/** Waits until every message has been sent, and checks that each arrived. */
async function delivered(db: Database, { received }: Receiver): Promise<void> {
  const unsent = () => db.query(`select from webhook_delivery where status <> 'SUCCEEDED'`);
  await until('Not every message was sent', async () => !(await unsent()).length);
  const ids = new Set(received.map(({ headers }) => headers['webhook-id']));
  assert.equal(ids.size, await messages(db), 'Not every message that was sent arrived.');
}

async function until(complaint: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE_SECONDS * 1000; !(await isSo()); await sleep(50))
    assert.ok(Date.now() < end, `${complaint} after ${PATIENCE_SECONDS} s.`);
}

function report(when: string, ratios: number[]): void {
  const ratio = median(ratios);
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((one) => one.toFixed(2));
  const verdict = ratio >= BAR ? 'met' : 'NOT MET';
  console.log(`${when.padEnd(40)} ${ratio.toFixed(2)} (${least} – ${most}, bar ${BAR.toFixed(2)}) ${verdict}`);
}
