/** A service whose embedded PostgreSQL dies or restarts. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { eventually } from '../setup/freehold.ts';
import { newFolder, removeFolder, restClient, spawnService } from '../setup/spawn.ts';

const LOGIN = { email: 'd@example.org', password: 'a heron on the roof' };
const folders = (dataDir: string) => ({
  pidFile: join(dataDir, 'postgres', 'cluster', 'postmaster.pid'),
  password: join(dataDir, 'postgres', 'password'),
});
const recordOf = (dataDir: string) => readFileSync(folders(dataDir).pidFile, 'utf8').split('\n');
const pidOf = (dataDir: string) => Number(recordOf(dataDir)[0]);

function newData(): string {
  const dataDir = newFolder();
  onTestFinished(() => removeFolder(dataDir));
  return dataDir;
}

it('A service whose PostgreSQL dies says so and exits with 1, and the next start has the data', async () => {
  const environment = { DATA_DIR: newData() };
  const first = await spawnService(environment);
  onTestFinished(() => void first.process.kill('SIGKILL'));
  expect((await restClient(first.url)('POST', '/v1/auth/register', LOGIN)).status).toBe(200);
  const exited = once(first.process, 'close');
  process.kill(pidOf(first.dataDir), 'SIGKILL');
  expect((await exited)[0]).toBe(1);
  expect(first.output()).toContain('PostgreSQL died, so this process exits.');
  expect(first.output()).toContain(join(first.dataDir, 'postgres', 'log'));

  const second = await spawnService(environment);
  expect((await restClient(second.url)('POST', '/v1/auth/login', LOGIN)).status).toBe(200);
  expect(await second.stop()).toBe(0);
  expect(second.output()).not.toContain('PostgreSQL died');
});

it('A service whose PostgreSQL restarts its sessions goes on, and still notices a later death', async () => {
  const service = await spawnService({ DATA_DIR: newData() });
  onTestFinished(() => void service.process.kill('SIGKILL'));
  const { dataDir, url } = service;
  const exited = once(service.process, 'close');
  const postmaster = pidOf(dataDir);
  const client = new pg.Client({
    ...{ host: '127.0.0.1', port: Number(recordOf(dataDir)[3]), user: 'freehold', database: 'postgres' },
    password: readFileSync(folders(dataDir).password, 'utf8').trim(),
  });
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query('select pg_backend_pid() as pid');
  const ended = new Promise<void>((end) => client.once('end', end));
  process.kill(rows[0].pid, 'SIGKILL');
  await ended;
  const register = () => restClient(url)('POST', '/v1/auth/register', LOGIN).then(({ status }) => status);
  await eventually(async () => (await register().catch(() => 0)) === 200);
  expect(service.process.exitCode).toBe(null);
  expect(pidOf(dataDir)).toBe(postmaster);
  process.kill(postmaster, 'SIGKILL');
  expect((await exited)[0]).toBe(1);
});
