/** SECRET_KEY is replaced while customers work, as docs/operate/security.md tells it. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Secret, TOTP } from 'otpauth';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { placeCluster } from '../../entities/database/embedded/cluster.ts';
import { SEALED_COLUMNS } from '../../entities/database/sealed.ts';
import { KeyMissing, Vault } from '../../entities/secrets.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { startReceiver, verify } from '../setup/receiver.ts';
import {
  type Answer,
  freePort,
  MACHINE,
  newFolder,
  type RunningService,
  removeFolder,
  restClient,
  spawnService,
} from '../setup/spawn.ts';

const [A, B] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const [OLD, NEW] = [A.toString('base64'), B.toString('base64')];
const DATABASE_URL = await newDatabaseUrl();
const db = await Database.open(DATABASE_URL, { poolSize: 2 });
atEnd(() => db.close());
const receiver = await startReceiver();
atEnd(() => receiver.close());

/** Two processes behind fixed ports, of which one at a time restarts. */
const ports = [String(await freePort()), String(await freePort())];
const processes: (RunningService | undefined)[] = [];
atEnd(() => Promise.all(processes.map((one) => one?.kill())));
async function restart(keys: Record<string, string>): Promise<void> {
  for (const [at, PORT] of ports.entries()) {
    await processes[at]?.stop();
    processes[at] = await spawnService({
      ...{ DATABASE_URL, PORT, SIMULATED_PAYMENT_SECONDS: '0.05', SIMULATED_PROVISION_SECONDS: '0.05' },
      ...{ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', LIMIT_SERVERS: '100000', LIMIT_WEBHOOKS: '100000', ...keys },
    });
  }
}

let turn = 0;
/** Asks the processes in turn. While one restarts, the other answers. */
async function ask(token: string | undefined, ...request: Parameters<ReturnType<typeof restClient>>): Promise<Answer> {
  for (let attempt = 0; ; attempt++) {
    const url = `http://127.0.0.1:${ports[turn++ % ports.length]}`;
    try {
      return await restClient(url, token)(...request);
    } catch (error) {
      if (attempt > 20 || !(error instanceof TypeError)) throw error;
    }
  }
}
async function ok(...request: Parameters<typeof ask>): Promise<Answer> {
  const answer = await ask(...request);
  if (answer.status !== 200) throw new Error(`${request[1]} ${request[2]}: ${JSON.stringify(answer.body)}`);
  return answer;
}

const reseal = (environment: Record<string, string> = {}) =>
  new Promise<{ code: number; output: string }>((done) => {
    const file = join(import.meta.dirname, '..', '..', 'commands', 'reseal.ts');
    execFile(process.execPath, [file], { env: { ...MACHINE, ...environment } }, (error, out, faults) =>
      done({ code: Number(error?.code ?? 0), output: out + faults }),
    );
  });

const person = { email: 'rotation@example.org', password: 'a heron on the roof' };

async function customer() {
  const { tokens } = (await ok(undefined, 'POST', '/v1/auth/register', person)).body;
  const first: string = tokens.access_token;
  await ok(first, 'POST', '/v1/billing/topups', { amount_usd: 5000, crypto: 'BTC' });
  await eventually(async () => (await ok(first, 'GET', '/v1/account/balance')).body.balance_usd >= 5000);
  const hook = (await ok(first, 'POST', '/v1/webhooks', { url: receiver.url, event_filter: 'ssh_key.*' })).body;
  const { plaintext: key } = (await ok(first, 'POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' })).body;
  const { secret } = (await ok(first, 'POST', '/v1/auth/totp/setup', { password: person.password })).body;
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  const enabled = await ok(first, 'POST', '/v1/auth/totp/enable', { totp_code: totp.generate() });
  return { key: key as string, hook, codes: enabled.body.recovery_codes as string[] };
}

const ACCEPT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
/** Sends a message to each process, in a session of MCP if one is given. */
async function mcp(key: string, message: object, session?: string): Promise<Response[]> {
  const headers = { ...ACCEPT, authorization: `Bearer ${key}`, ...(session && { 'mcp-session-id': session }) };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...message });
  return Promise.all(ports.map((port) => fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers, body })));
}
const INITIALIZE = {
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

/** One customer works without a pause. Each order has a key of idempotency, and comes again at the other process. */
async function load({ key }: { key: string }, until: Promise<unknown>): Promise<number> {
  let [over, count] = [false, 0];
  void until.finally(() => (over = true));
  while (!over) {
    const headers = { 'idempotency-key': `order-${++count}` };
    const order = { service_code: 'vps-1', root_password: 'correct horse 9', user_data: '#cloud-config' };
    const [first, again] = [
      await ok(key, 'POST', '/v1/servers', order, headers),
      await ok(key, 'POST', '/v1/servers', order, headers),
    ];
    expect(again.body).toEqual(first.body);
    await ok(key, 'DELETE', `/v1/servers/${first.body.order_number}`);
    const stranger = { email: `stranger-${count}@example.org`, password: 'another heron on it' };
    const registered = [1, 2].map(() =>
      ok(undefined, 'POST', '/v1/auth/register', stranger, { 'idempotency-key': `new-${count}` }),
    );
    const [one, two] = await Promise.all(registered);
    expect(two!.body).toEqual(one!.body);
  }
  return count;
}

it('SECRET_KEY is replaced under load without a lost request, and the old key opens nothing', async () => {
  await restart({ SECRET_KEY: OLD });
  const made = await customer();
  const loginBy = async (totp_code: string) =>
    (await ok(undefined, 'POST', '/v1/auth/login', { ...person, totp_code })).body.tokens.access_token;
  const [begun] = await mcp(made.key, INITIALIZE);
  const session = begun!.headers.get('mcp-session-id')!;
  const steps = (async () => {
    await restart({ SECRET_KEY: OLD, SECRET_KEY_PREVIOUS: NEW });
    await restart({ SECRET_KEY: NEW, SECRET_KEY_PREVIOUS: OLD });
    await loginBy(made.codes[0]!);
    const answers = await mcp(made.key, { method: 'tools/list' }, session);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    await Promise.all(answers.map((answer) => answer.body?.cancel()));
    const foreign = await reseal({
      DATABASE_URL,
      SECRET_KEY: Buffer.alloc(32, 3).toString('base64'),
      SECRET_KEY_PREVIOUS: `${OLD},${NEW}`,
    });
    expect(foreign).toMatchObject({ code: 1, output: expect.stringContaining('No service has started with this') });
    // The reseal needs the old key, and forgets nothing without it.
    const tooEarly = await reseal({ DATABASE_URL, SECRET_KEY: NEW });
    expect(tooEarly).toMatchObject({ code: 1, output: expect.stringContaining('SECRET_KEY is wrong') });
    const done = await reseal({ DATABASE_URL, SECRET_KEY: NEW, SECRET_KEY_PREVIOUS: OLD });
    expect(done.output).toMatch(/totp\.seed +1 sealed again[\s\S]+Remove SECRET_KEY_PREVIOUS after 20\d\d-/);
    expect(done.code).toBe(0);
    expect(done.output).toMatch(/Send this to the database[\s\S]+vacuum full totp;[\s\S]+checkpoint;/);
    await restart({ SECRET_KEY: NEW });
  })();
  const orders = await load(made, steps);
  await steps;
  expect(orders).toBeGreaterThan(5);

  await loginBy(made.codes[1]!);
  expect((await ask(undefined, 'POST', '/v1/auth/login', { ...person, totp_code: made.codes[0]! })).status).toBe(401);
  const tested = (await ok(made.key, 'POST', `/v1/webhooks/${made.hook.id}/test`)).body;
  const message = receiver.received.find(({ headers }) => headers['webhook-id'] === tested.event_id)!;
  expect(() => verify(made.hook.secret, message)).not.toThrow();

  const [old, current] = [new Vault(A), new Vault(B)];
  let opened = 0;
  for (const column of SEALED_COLUMNS)
    for (const { key, sealed } of await column.LIST_OTHERS.all(db, [Buffer.alloc(0), '', null])) {
      expect(() => column.open(old, sealed, key)).toThrow(KeyMissing);
      column.open(current, sealed, key);
      opened++;
    }
  expect(opened).toBeGreaterThan(10);
  const keys = await db.query<{ id: Buffer }>('select id from secret_key');
  expect(keys.map(({ id }) => id)).toEqual([current.keyId]);
});

it('A key in DATA_DIR is replaced beside the embedded database, whose files keep nothing under it', async () => {
  const DATA_DIR = newFolder();
  onTestFinished(() => removeFolder(DATA_DIR));
  const before = await spawnService({ DATA_DIR });
  const { tokens } = (await restClient(before.url, undefined)('POST', '/v1/auth/register', person)).body;
  const setup = { password: person.password };
  for (let turn = 0; turn < 3; turn++)
    await restClient(before.url, tokens.access_token)('POST', '/v1/auth/totp/setup', setup);
  await before.stop();
  const SECRET_KEY_PREVIOUS_FILE = join(DATA_DIR, 'secret-key-previous');
  renameSync(join(DATA_DIR, 'secret-key'), SECRET_KEY_PREVIOUS_FILE);
  const { header } = new Vault(Buffer.from(readFileSync(SECRET_KEY_PREVIOUS_FILE, 'utf8'), 'base64'));
  const { folder } = await placeCluster(DATA_DIR, () => {});
  const filesWithOldKey = () =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
      (file) => file.isFile() && readFileSync(join(file.parentPath, file.name)).includes(header),
    );
  expect(filesWithOldKey().length).toBeGreaterThan(2);
  const service = await spawnService({ DATA_DIR, SECRET_KEY_PREVIOUS_FILE });
  onTestFinished(() => service.kill());
  const running = await reseal({ DATA_DIR, SECRET_KEY_PREVIOUS_FILE });
  expect(running).toMatchObject({ code: 0, output: expect.stringContaining('All secrets are under SECRET_KEY.') });
  expect(running.output).toContain('PostgreSQL wrote the tables and the WAL anew, without values under earlier keys.');
  expect(filesWithOldKey().map(({ name }) => name)).toEqual([]);
  expect(await service.stop()).toBe(0);
  rmSync(SECRET_KEY_PREVIOUS_FILE);
  expect(await reseal({ DATA_DIR })).toMatchObject({ code: 0 });
  await (await spawnService({ DATA_DIR })).stop();
});
