/** A PostgreSQL with a standby that follows it by streaming replication. Both are the embedded one. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { type Cluster, ENVIRONMENT, placeCluster, writeOwned } from '../../../entities/database/embedded/cluster.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../entities/database/embedded/postgres.ts';
import { eventually } from '../freehold.ts';
import { freePort, newFolder, type OnEnd, removeFolder } from '../spawn.ts';

const FLAGS = ['fsync=off', 'full_page_writes=off', 'wal_level=replica', 'max_wal_senders=4', 'wal_keep_size=256MB'];

export interface Pair {
  /** The primary by the role of the service, and by the owner of the tables. */
  url: string;
  ownerUrl: string;
  /** The standby by the role of the service. */
  readUrl: string;
  /** Sends SQL to the standby as its superuser. */
  onStandby(sql: string): Promise<Record<string, unknown>[]>;
  /** The statements that the standby has executed. */
  log(): string;
  stopStandby(): Promise<void>;
  startStandby(): Promise<void>;
  /** Stops all its processes without a word, or lets them go on. */
  freezeStandby(isFrozen: boolean): void;
}

/** Starts both. The given hook stops them. */
export async function startPair(onEnd: OnEnd): Promise<Pair> {
  const dataDir = newFolder();
  onEnd(() => removeFolder(dataDir));
  const primary = await startEmbeddedPostgres(dataDir, FLAGS);
  onEnd(() => primary.stop());
  const { binaries, identity } = await placeCluster(dataDir, () => {});
  const folder = join(dirname(primary.folder), 'standby');
  await copyCluster(primary, folder, identity);
  const [port, log] = [await freePort(), join(folder, 'log')];
  const at = (url: string) => Object.assign(new URL(url), { port }).href;
  let standby: ChildProcess | undefined;
  const stopStandby = async () => {
    if (standby?.exitCode !== null) return;
    standby.kill('SIGQUIT');
    await once(standby, 'exit');
  };
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=200',
    'log_statement=all',
    ...FLAGS,
  ];
  const onStandby = (sql: string) => query(at(primary.ownerUrl), sql);
  const startStandby = async () => {
    standby = spawn(
      'sh',
      ['-c', 'exec "$0" "$@" 2>>log', join(binaries, 'postgres'), '-D', folder, '-p', `${port}`, ...flagsOf(settings)],
      { ...identity, cwd: folder, env: ENVIRONMENT, stdio: 'ignore' },
    );
    await eventually(() => onStandby('select 1').catch(() => undefined), 30).catch(() => {
      throw new Error(`The standby did not start:\n${readFileSync(log, 'utf8')}`);
    });
  };
  const freezeStandby = (isFrozen: boolean) => {
    const pid = standby!.pid!;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
    for (const one of [pid, ...children]) process.kill(one, isFrozen ? 'SIGSTOP' : 'SIGCONT');
  };
  onEnd(stopStandby);
  await startStandby();
  const { url, ownerUrl } = primary;
  return {
    ...{ url, ownerUrl, readUrl: at(url), onStandby, stopStandby, startStandby, freezeStandby },
    log: () => readFileSync(log, 'utf8'),
  };
}

const flagsOf = (settings: string[]) => settings.flatMap((setting) => ['-c', setting]);

/** Copies a cluster that runs (PostgreSQL, 25.3.3: a base backup by the low-level functions). */
async function copyCluster({ folder: from, ownerUrl }: EmbeddedPostgres, to: string, identity: Cluster['identity']) {
  const client = new pg.Client(ownerUrl);
  await client.connect();
  await client.query(`select pg_backup_start('standby', true)`);
  execFileSync('cp', ['-a', from, to]);
  const { rows } = await client.query('select labelfile from pg_backup_stop(false)');
  await client.end();
  rmSync(join(to, 'postmaster.pid'), { force: true });
  const owned = { backup_label: rows[0].labelfile, 'standby.signal': '', log: '' };
  for (const [name, text] of Object.entries(owned)) writeOwned(join(to, name), text, identity);
  const { hostname, port, username, password } = new URL(ownerUrl);
  const primary = `host=${hostname} port=${port} user=${username} password=${password}`;
  appendFileSync(join(to, 'postgresql.auto.conf'), `primary_conninfo = '${primary}'\n`);
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {});
  await client.connect();
  return (await client.query(sql).finally(() => client.end())).rows;
}
