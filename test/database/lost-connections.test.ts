/** Connections that end at bad moments. They cause errors, and never the end of the process. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { isConnectionLost } from '../../entities/database/transaction.ts';
import { newDatabaseUrl } from '../setup/database.ts';

/** The message of a PostgreSQL that shuts down: the fields of ErrorResponse (PostgreSQL, 54.7). */
const FIELDS = Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0');
const LENGTH = Buffer.alloc(4);
LENGTH.writeInt32BE(FIELDS.length + 4);
const SHUT_DOWN = Buffer.concat([Buffer.from('E'), LENGTH, FIELDS]);
const READY = Buffer.from([0x5a, 0, 0, 0, 5]);

/** A proxy that ends connections in the packet that reports them ready. */
async function startProxy(databaseUrl: string) {
  const { hostname, port } = new URL(databaseUrl);
  const server = createServer((client) => {
    const database = connect(Number(port || 5432), hostname);
    for (const socket of [client, database])
      socket.on('error', () => {}).on('close', () => [client, database].map((one) => one.destroy()));
    client.on('data', (data) => database.write(data));
    database.on('data', (data) => {
      if (!proxy.ends || data.length < 6 || data.compare(READY, 0, 5, -6 + data.length, data.length - 1) !== 0)
        return client.write(data);
      proxy.ended++;
      return client.end(Buffer.concat([data, SHUT_DOWN]));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const through = new URL(databaseUrl);
  through.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const proxy = { url: through.href, ends: false, ended: 0 };
  return proxy;
}

it.each(['a new connection', 'one that another user has just returned'])(
  '%s may end when it is ready',
  async (which) => {
    const proxy = await startProxy(await newDatabaseUrl());
    const db = await Database.open(proxy.url, { poolSize: 1 });
    onTestFinished(() => db.close());
    const uncaught: unknown[] = [];
    const note = (error: unknown) => uncaught.push(error);
    process.on('uncaughtExceptionMonitor', note);
    onTestFinished(() => void process.off('uncaughtExceptionMonitor', note));

    const one = () => db.transaction((tx) => tx.query('select 1'));
    if (which === 'a new connection') await db.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {});
    proxy.ends = true;
    const before = db.query('select 1').catch((error: unknown) => error);
    await expect(one()).rejects.toSatisfy(isConnectionLost);
    await before;
    expect(proxy.ended).toBeGreaterThan(0);
    proxy.ends = false;
    expect(await one()).toEqual([{ '?column?': 1 }]);
    expect(uncaught).toEqual([]);
  },
);

it('A connection whose backend is silent ends, and one with a long statement does not', async () => {
  const db = await Database.open(await newDatabaseUrl(), { poolSize: 4, silentMs: 1000 });
  onTestFinished(() => db.close());
  const long = db.query('select pg_sleep(4)');
  const pids = new Set<number>();
  const note = async () => {
    const [row] = await db.query<{ pid: number }>('select pg_backend_pid() as pid, pg_sleep(0.2)');
    pids.add(row!.pid);
  };
  await Promise.all([note(), note(), note()]);
  for (const pid of pids) {
    process.kill(pid, 'SIGSTOP');
    onTestFinished(() => void process.kill(pid, 'SIGCONT'));
  }
  const asked = [1, 2, 3].map(() => db.query('select 1').catch((error: unknown) => error));
  for (const answer of await Promise.all(asked)) expect(answer).toSatisfy(isConnectionLost);
  expect(await db.query('select 1 as one')).toEqual([{ one: 1 }]);
  await long;
});

it('A waiting for a lock ends before a dead process could hold it after another', async () => {
  const db = await Database.open(await newDatabaseUrl(), { poolSize: 2 });
  onTestFinished(() => db.close());
  const settings = ['lock_timeout', 'idle_in_transaction_session_timeout', 'tcp_user_timeout'];
  const read = async (name: string) =>
    (await db.query<{ setting: string }>('select setting from pg_settings where name = $1', [name]))[0]!.setting;
  const [waiting, holding, silent] = (await Promise.all(settings.map(read))).map(Number);
  expect(waiting).toBeGreaterThan(0);
  expect(waiting).toBeLessThan(holding!);
  expect(silent).toBe(holding);
});
