/**
 * A real PostgreSQL that comes with the service, for an operator who has none. It runs on a free port of the loopback
 * interface and keeps its data in DATA_DIR. If the service was killed and its server lived on, the next start adopts it.
 */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Cluster, placeCluster, USER, writeOwned } from './embedded-cluster.ts';

/** Any fixed number: who holds this lock owns the embedded server. */
const OWNER_LOCK = 4_707_366_002;
/** How long the lock of a process that has just died may stay: PostgreSQL has to notice, on a busy machine after seconds. */
const OWNER_PATIENCE = '5s';
/** How often a start is tried that PostgreSQL refuses, and the pause between two looks. */
const START_ATTEMPTS_MAX = 100;
const PAUSE_MS = 25;
const REFUSED_PAUSE_MS = 100;

/** How a start came by its server. */
export type Arrival = 'started' | 'adopted' | 'recovered';

export interface EmbeddedPostgres {
  /** The connection string of the database. */
  url: string;
  /** The folder of the cluster. */
  folder: string;
  /** Whether the server was started, started and recovered from a crash, or still ran. */
  arrival: Arrival;
  /** How long it took until the server answered. */
  seconds: number;
  /** Stops the server; what was committed stays. */
  stop(): Promise<void>;
}

interface Running {
  pid: number;
  port: number;
}

/**
 * Starts the server of a data folder, or adopts the one that runs there.
 * @param flags more settings, such as `fsync=off` for tests
 * @param onWait called as soon as this process can only wait for PostgreSQL, perhaps several times
 * @throws if another process of ours uses the folder
 */
export async function startEmbeddedPostgres(
  dataDir: string,
  flags: string[] = [],
  onWait = () => {},
): Promise<EmbeddedPostgres> {
  const began = performance.now();
  const cluster = await placeCluster(dataDir, onWait);
  const { folder } = cluster;
  const { pid, port, arrival } = await run(cluster, flags, onWait);
  const owner = await own(urlOf(cluster, port), dataDir);
  const { rowCount } = await owner.query('select from pg_database where datname = $1', [USER]);
  if (!rowCount) await owner.query(`create database ${USER}`);
  return {
    url: urlOf(cluster, port, USER),
    folder,
    arrival,
    seconds: (performance.now() - began) / 1000,
    async stop() {
      // SIGINT is PostgreSQL's fast shutdown: sessions end, the checkpoint is written. The owner lets go only then, so
      // that nobody adopts a server that is about to stop.
      signal(pid, 'SIGINT');
      await owner.end().catch(() => {});
      // The file goes last; a server that was adopted may stay in the table of processes for longer.
      for (let waited = 0; alive(pid) && existsSync(pidFile(folder)) && waited < 30_000; waited += 20) await sleep(20);
    },
  };
}

const urlOf = ({ password }: Cluster, port: number, database = 'postgres') =>
  `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`;
const pidFile = (folder: string) => join(folder, 'postmaster.pid');

/** The running server, or a new one. */
async function run(cluster: Cluster, flags: string[], onWait: () => void): Promise<Running & { arrival: Arrival }> {
  for (let attempt = 1; ; ) {
    const running = recorded(cluster.folder);
    const greeting = running && (await greet(cluster, running.port));
    if (greeting === 'welcome') return { ...running!, arrival: 'adopted' };
    if (greeting === 'wrong password') throw wrongPassword(cluster);
    if (greeting === 'not now') {
      onWait();
      await sleep(PAUSE_MS); // it recovers or shuts down, and tells which by what it does next
      continue;
    }
    const { server, complaint } = await launch(cluster, flags, onWait);
    if (server) return server;
    // Sessions of a server that was killed hold its memory until they notice, and PostgreSQL refuses until then.
    if (attempt++ === START_ATTEMPTS_MAX) throw new Error(complaint);
    await sleep(REFUSED_PAUSE_MS);
  }
}

/** Starts a server, and waits until it answers. If it refuses to start, its complaint is returned. */
async function launch(cluster: Cluster, flags: string[], onWait: () => void) {
  const { binaries, folder, identity } = cluster;
  const logFile = join(dirname(folder), 'log');
  const port = await freePort();
  writeOwned(logFile, '', identity);
  const log = openSync(logFile, 'a');
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', ...flags];
  // A process group of its own: Ctrl-C is for the service, which then stops the server when it has drained.
  const server = spawn(
    join(binaries, 'postgres'),
    ['-D', folder, '-p', String(port), ...settings.flatMap((s) => ['-c', s])],
    { ...identity, cwd: folder, detached: true, stdio: ['ignore', log, log] },
  );
  closeSync(log);
  server.unref();
  onWait();
  let over = false;
  server.on('exit', () => (over = true)).on('error', () => (over = true));
  while (!over) {
    const greeting = await greet(cluster, port);
    if (greeting === 'welcome') {
      const recovered = readFileSync(logFile, 'utf8').includes('automatic recovery in progress');
      const arrival: Arrival = recovered ? 'recovered' : 'started';
      return { server: { pid: server.pid!, port, arrival } };
    }
    if (greeting === 'wrong password') {
      server.kill('SIGINT');
      throw wrongPassword(cluster);
    }
    await sleep(PAUSE_MS);
  }
  return { complaint: `PostgreSQL did not start; see ${logFile}:\n${readFileSync(logFile, 'utf8')}` };
}

const wrongPassword = ({ folder }: Cluster) =>
  new Error(`The password beside ${folder} is not that of the cluster. Restore both from one backup.`);

/** The server that the folder names, if its process lives. */
function recorded(folder: string): Running | undefined {
  const file = pidFile(folder);
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8').split('\n');
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!(pid > 0 && port > 0 && alive(pid))) return undefined;
  if (!isZombie(pid)) return { pid, port };
  // PostgreSQL takes a zombie for alive, and would refuse until init has removed it. What still uses the memory of the
  // dead server it finds out without this file.
  rmSync(file, { force: true });
  return undefined;
}

/** Whether a process is dead, and only its entry in the table of processes is left. */
function isZombie(pid: number): boolean {
  const file = `/proc/${pid}/stat`;
  // The state follows the name, which stands in parentheses and may contain some.
  return existsSync(file) && /\) [ZX] [^)]*$/.test(readFileSync(file, 'latin1'));
}

/** `not now` is a server that starts, recovers or shuts down. */
type Greeting = 'welcome' | 'wrong password' | 'not now' | 'silence';
const GREETINGS: Record<string, Greeting> = { '28P01': 'wrong password', '57P03': 'not now' };

async function greet(cluster: Cluster, port: number): Promise<Greeting> {
  const client = new pg.Client({ connectionString: urlOf(cluster, port), connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  return client.connect().then(
    () => client.end().then(() => 'welcome' as const),
    (error) => GREETINGS[error.code] ?? 'silence',
  );
}

const LOCK_NOT_AVAILABLE = '55P03';

/** Takes the server for this process. The lock goes with its connection, also when the process is killed. */
async function own(url: string, dataDir: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, keepAlive: true });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(`set lock_timeout = '${OWNER_PATIENCE}'`);
    await client.query('select pg_advisory_lock($1)', [OWNER_LOCK]);
    return client;
  } catch (error) {
    await client.end();
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
    throw new Error(
      `Another process uses the data folder ${basename(dataDir)} (${dataDir}). Set DATA_DIR, or share one DATABASE_URL.`,
    );
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}

const alive = (pid: number) => signal(pid, 0);
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
