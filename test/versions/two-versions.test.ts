/**
 * This version starts beside the last version, on one database, and the last version then stops. Customers work all the time.
 * OLD_COMMIT names another commit instead of the last version.
 */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { emptyDatabase } from '../setup/archives.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { type Receiver, startReceiver } from '../setup/receiver.ts';
import { say } from '../setup/say.ts';
import { MACHINE, MAIN, newFolder, type RunningService, removeFolder, spawnService } from '../setup/spawn.ts';
import { SECRET_KEY } from '../setup/vault.ts';
import { awaited, plainClient } from './client.ts';
import { checkOut, commitOf, programOf, readLastVersion } from './last-version.ts';
import { type Customer, newCustomer, type Seen, work } from './load.ts';

const name = process.env.OLD_COMMIT ?? readLastVersion().commit;
const commit = commitOf(name);
if (!commit)
  say(`Skipped: two versions on one database, because this clone lacks the commit ${name} (git fetch --unshallow).`);

const CUSTOMERS = 3;
/** Answers that each phase waits for. */
const ANSWERS = 100;

const migrationsOf = (folder: string) =>
  readdirSync(join(folder, 'entities/database/migrations')).filter((file) => file.endsWith('.sql')).length;

/** A busy machine delays answers of PostgreSQL. */
const BUSY = /timeout (expired|exceeded)/;
/** Returns the errors among the lines of the standard error output. Old versions print them with their stack. */
const errorsIn = ({ complaints }: { complaints(): string }) =>
  complaints()
    .split('\n')
    .filter((line) => (line.startsWith('{') ? /"level":"(error|fatal)"/.test(line) : /^\S/.test(line)))
    .filter((line) => !BUSY.test(line));

describe.skipIf(!commit)('While this version replaces the last version under load', async () => {
  const dataDir = newFolder();
  atEnd(() => removeFolder(dataDir));
  const { environment } = await emptyDatabase(atEnd);
  const settings = {
    ...{ ...environment, SECRET_KEY, DATA_DIR: dataDir, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
    ...{ SIMULATED_PAYMENT_SECONDS: '0.3', SIMULATED_PROVISION_SECONDS: '0.3' },
    ...{ LIMIT_SERVERS: '1000', LIMIT_PENDING_TOPUPS: '1000', LIMIT_UNPAID_TOPUPS_PER_DAY: '1000' },
  };
  const start = async (main: string) => {
    const service = await spawnService(settings, main);
    onTestFinished(() => service.kill());
    let complaints = '';
    service.process.stderr!.on('data', (chunk) => (complaints += chunk));
    return { ...service, complaints: () => complaints };
  };
  const receiver = await startReceiver();
  atEnd(() => receiver.close());

  it('no call gets 5xx, no order, money or event is lost or doubled, and neither version logs an error', async () => {
    const program = programOf(checkOut(commit!, onTestFinished));
    const old = await start(program);
    const seen: Seen = { answers: {}, faults: [], moved: {} };
    const balancer = { urls: [old.url] };
    await openStock(old);
    const customers = await Promise.all(
      Array.from({ length: CUSTOMERS }, (_, i) => newCustomer(balancer, seen, receiver.url, i)),
    );
    const over = new AbortController();
    const working = Promise.all(customers.map((customer) => work(customer, balancer, seen, over.signal)));
    const answered = (url: string, count: number) => eventually(async () => (seen.answers[url] ?? 0) >= count);

    await answered(old.url, ANSWERS);
    const now = await start(MAIN);
    balancer.urls.push(now.url);
    const before = seen.answers[old.url]!;
    await Promise.all([answered(now.url, ANSWERS), answered(old.url, before + ANSWERS)]);
    expect(await old.stop()).toBe(0);
    balancer.urls.shift();
    await answered(now.url, 2 * ANSWERS);
    over.abort();
    await working;

    say(`Calls: ${JSON.stringify(seen.answers)}, sent again: ${JSON.stringify(seen.moved)}.`);
    expect(seen.faults).toEqual([]);
    for (const customer of customers) await expectAll(customer, now.url);
    await eventually(async () => (await waiting(now)) === 0);
    for (const { servers } of customers)
      for (const number of servers.keys()) expect(createdEvents(receiver, number).size).toBe(1);
    // Without a newer migration, the old program still knows the database.
    if (migrationsOf(join(program, '..')) < migrationsOf(join(MAIN, '..')))
      await expect(start(program)).rejects.toThrow('Start that version, or restore a backup made before the upgrade.');
    expect(errorsIn(old)).toEqual([]);
    expect(errorsIn(now)).toEqual([]);
    expect(await now.stop()).toBe(0);
    const env = { ...MACHINE, ...environment, SECRET_KEY };
    const { stdout } = await promisify(execFile)(process.execPath, [join(MAIN, '..', 'commands/verify.ts')], { env });
    expect(stdout).toContain('The books balance');
  });
});

/** Returns the ids of the events of an order. A message may come twice. */
const createdEvents = ({ received }: Receiver, number: string) =>
  new Set(
    received
      .filter(({ body }) => body.type === 'server.created' && JSON.stringify(body.data).includes(number))
      .map(({ headers }) => headers['webhook-id']),
  );

const operator = ({ graphql, operatorToken }: RunningService, query: string) =>
  plainClient(graphql, operatorToken)('POST', '', { query });

async function openStock(service: RunningService): Promise<void> {
  const { body } = await operator(
    service,
    'mutation { setStock(region: "ams", serviceCode: "vps-1", total: 1000) { total } }',
  );
  expect(body.errors).toBeUndefined();
}

/** Returns the number of webhooks and top-ups with work. */
async function waiting(service: RunningService): Promise<number> {
  const { body } = await operator(service, '{ tasks(limit: 200) { subject process } }');
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any version
  return body.data.tasks.filter(({ process }: any) => ['webhook', 'top-up'].includes(process)).length;
}

/** Proves that a customer has exactly what it was answered. */
async function expectAll(customer: Customer, url: string): Promise<void> {
  const rest = plainClient(url, customer.token);
  const has = await awaited(rest, '/v1/servers?limit=200', ({ data }) =>
    // biome-ignore lint/suspicious/noExplicitAny: an answer
    data.every(({ status }: any) => ['running', 'stopped'].includes(status)),
  );
  // biome-ignore lint/suspicious/noExplicitAny: an answer
  expect(new Map(has.data.map((one: any) => [one.order_number, one.hostname]))).toEqual(customer.servers);
  const topUps = await awaited(rest, '/v1/billing/topups?limit=200', ({ data }) =>
    // biome-ignore lint/suspicious/noExplicitAny: an answer
    data.every(({ status }: any) => status === 'confirmed'),
  );
  // biome-ignore lint/suspicious/noExplicitAny: an answer
  expect(new Set(topUps.data.map((one: any) => one.order_number))).toEqual(customer.topUps);
  const { body } = await rest('GET', '/v1/account/balance');
  expect(body.balance_usd).toBeCloseTo(customer.toppedUpUsd - customer.chargedUsd + customer.refundedUsd, 6);
}
