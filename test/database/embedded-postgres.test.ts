import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';

const FLAGS = ['fsync=off', 'max_connections=20'];
const isRoot = process.getuid?.() === 0;
const tellsTheDead = existsSync('/proc/self/stat');
if (!tellsTheDead) say('Left out: a dead server that stays in the table of processes, because there is no /proc.');
if (!isRoot) say('Left out: where root places the data of its PostgreSQL, because this is not root.');

const made = new Set<string>();
atEnd(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** A folder that all users may enter, so that it holds the data. */
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'freehold-embedded-'));
  made.add(folder);
  chmodSync(folder, 0o755);
  return folder;
}
/** Most tests share a cluster, because a new one takes a second. */
const dataDir = newFolder();

it('The log has no values of rows, as the email of a refused registration', async () => {
  const { folder, ownerUrl } = await start(dataDir);
  const client = new pg.Client(ownerUrl);
  await client.connect();
  await client.query('create table if not exists private (email text unique)');
  for (let i = 0; i < 2; i++)
    await client.query('insert into private values ($1)', ['ada@example.org']).catch((error) => error);
  await client.query('drop table private');
  await client.end();
  const log = readFileSync(join(dirname(folder), 'log'), 'utf8');
  expect(log).toContain('duplicate key value');
  expect(log).not.toContain('ada@example.org');
  expect(log).not.toContain('insert into');
});

async function start(dataDir: string): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres(dataDir, FLAGS);
  made.add(dirname(postgres.folder));
  onTestFinished(() => postgres.stop());
  return postgres;
}

/** Counts the log lines by which the server refuses connections. */
const refusals = ({ folder }: { folder: string }) =>
  readFileSync(join(dirname(folder), 'log'), 'utf8').split('the database system is shutting down').length - 1;

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query(sql).finally(() => client.end())).rows;
}
const pidOf = ({ folder }: { folder: string }) =>
  Number(readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n')[0]);

/** Starts a process that starts the server, reports the result, and lives until the test kills it. */
async function startInChild(dataDir: string, environment: Record<string, string> = {}) {
  const program = `
    import { startEmbeddedPostgres } from ${JSON.stringify(new URL('../../entities/database/embedded/postgres.ts', import.meta.url))};
    process.umask(0o077);
    const { ownerUrl: url, folder } = await startEmbeddedPostgres(${JSON.stringify(dataDir)}, ${JSON.stringify(FLAGS)}).catch(
      ({ message }) => ({ ownerUrl: message }),
    );
    console.log(JSON.stringify({ url, folder }));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const kill = async () => {
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await once(child, 'exit');
  };
  onTestFinished(kill);
  const [said] = await once(createInterface(child.stdout), 'line');
  return { ...(JSON.parse(said) as { url: string; folder: string }), process: child, kill };
}

describe('An embedded PostgreSQL', () => {
  it('is adopted with its data by the next start after its owner was killed', async () => {
    const child = await startInChild(dataDir);
    await query(child.url, 'create table if not exists kept as select 42 as answer');
    await child.kill();
    const pid = pidOf(child);
    const postgres = await start(dataDir);
    expect(postgres).toMatchObject({ ownerUrl: child.url, folder: child.folder });
    expect(pidOf(postgres)).toBe(pid);
    expect(await query(postgres.ownerUrl, 'select * from kept')).toEqual([{ answer: 42 }]);
    await postgres.stop();
    expect(existsSync(join(postgres.folder, 'postmaster.pid'))).toBe(false);
  });

  it('has no secret of the service in its environment', async () => {
    const folder = newFolder();
    const child = await startInChild(folder, { SECRET_KEY: 'only for the service', OPERATOR_TOKEN: 'the same' });
    await query(child.url, `create table seen (line text); copy seen from program 'env'`);
    const names = (await query(child.url, `select split_part(line, '=', 1) as name from seen`)).map(({ name }) => name);
    expect(names).toContain('PATH');
    expect(names).not.toContain('SECRET_KEY');
    expect(names).not.toContain('OPERATOR_TOKEN');
    await child.kill();
    await start(folder);
  });

  it('refuses a second instance on its folder, in this process and in another, and continues', async () => {
    const postgres = await start(dataDir);
    const sentence = `Another process uses the data folder ${dataDir.split('/').at(-1)} (${dataDir}). Set DATA_DIR, or share one DATABASE_URL.`;
    const [here, there] = await Promise.allSettled([startEmbeddedPostgres(dataDir, FLAGS), startInChild(dataDir)]);
    expect(here).toMatchObject({ status: 'rejected', reason: { message: sentence } });
    expect(there).toMatchObject({ value: { url: sentence } });
    expect(await query(postgres.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('starts anew while the process before it stops', async () => {
    const before = await start(dataDir);
    const next = start(dataDir);
    // The next start waits for the lock of the owner.
    await eventually(async () => (await query(before.url, 'select from pg_locks where not granted')).length > 0);
    await before.stop();
    const after = await next;
    expect(await query(after.ownerUrl, 'select 1 as works')).toEqual([{ works: 1 }]);
  });

  it('returns with its data after a crash and after a stop', async () => {
    const crashed = await start(dataDir);
    await query(crashed.url, 'create table if not exists kept as select 42 as answer');
    process.kill(pidOf(crashed), 'SIGKILL');
    const stopped = await start(dataDir);
    expect(await query(stopped.ownerUrl, 'select * from kept')).toEqual([{ answer: 42 }]);
    await stopped.stop();
    const postgres = await start(dataDir);
    expect(await query(postgres.ownerUrl, 'select * from kept')).toEqual([{ answer: 42 }]);
  });

  it.skipIf(!tellsTheDead)('starts again while the killed server is still in the table of processes', async () => {
    const child = await startInChild(dataDir);
    await query(child.url, 'create table if not exists kept as select 42 as answer');
    const pid = pidOf(child);
    child.process.kill('SIGSTOP'); // a stopped parent does not collect its dead children
    process.kill(pid, 'SIGKILL');
    const postgres = await start(dataDir);
    expect(pidOf(postgres)).not.toBe(pid);
    expect(process.kill(pid, 0)).toBe(true);
    expect(await query(postgres.ownerUrl, 'select * from kept')).toEqual([{ answer: 42 }]);
  });

  it('waits for a server that refuses connections, for any time, and starts after its end', async () => {
    const stopping = await start(dataDir);
    const pid = pidOf(stopping);
    const session = new pg.Client({ connectionString: stopping.url });
    session.on('error', () => {});
    await session.connect();
    onTestFinished(() => session.end());
    process.kill(pid, 'SIGTERM'); // PostgreSQL waits for its sessions to end and refuses new ones
    await eventually(async () =>
      query(stopping.url, 'select').then(
        () => false,
        () => true,
      ),
    );
    const before = refusals(stopping);
    const starting = start(dataDir);
    await Promise.race([starting, eventually(async () => refusals(stopping) > before + 50)]);
    await session.end();
    const log = () => readFileSync(join(dirname(stopping.folder), 'log'), 'utf8');
    expect(log()).not.toContain('lock file');
    await stopping.stop();
    expect(pidOf(await starting)).not.toBe(pid);
  });

  it('reports a password file of another cluster instead of retrying without end', async () => {
    const postgres = await start(dataDir);
    await postgres.stop();
    const file = join(dirname(postgres.folder), 'password');
    const password = readFileSync(file);
    writeFileSync(file, 'guessed');
    onTestFinished(() => writeFileSync(file, password));
    await expect(startEmbeddedPostgres(dataDir, FLAGS)).rejects.toThrow(/password .* does not fit the cluster/);
  });
});

describe.skipIf(!isRoot)('An embedded PostgreSQL of root', () => {
  it('places its data elsewhere if its user cannot enter the folder, and finds them after the user can', async () => {
    const parent = newFolder();
    const closed = join(parent, 'data');
    mkdirSync(closed);
    for (const folder of [closed, parent]) chmodSync(folder, 0o700);
    const child = await startInChild(closed);
    expect(child.folder).toMatch(/^\/var\/lib\/freehold\/[0-9a-f]{12}\/cluster$/);
    expect(existsSync(join(closed, 'postgres'))).toBe(false);
    expect(statSync(child.folder).uid).not.toBe(0);
    await query(child.url, 'create table kept as select 42 as answer');
    await child.kill();
    for (const folder of [closed, parent]) chmodSync(folder, 0o755);
    const postgres = await start(closed);
    expect(await query(postgres.ownerUrl, 'select * from kept')).toEqual([{ answer: 42 }]);
  });

  it('places its data elsewhere, too, if it creates the folder under a strict umask', async () => {
    const fresh = join(newFolder(), 'data');
    const child = await startInChild(fresh);
    await child.kill();
    expect(child.folder).toMatch(/^\/var\/lib\/freehold/);
    expect(await start(fresh)).toMatchObject({ folder: child.folder });
  });

  it('creates no new cluster elsewhere when its user can no longer enter the folder', async () => {
    const postgres = await start(dataDir);
    await postgres.stop();
    chmodSync(dataDir, 0o700);
    onTestFinished(() => chmodSync(dataDir, 0o755));
    await expect(startEmbeddedPostgres(dataDir, FLAGS)).rejects.toThrow(/can no longer enter/);
  });
});
