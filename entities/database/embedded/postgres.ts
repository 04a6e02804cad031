/**
 * The PostgreSQL that comes with the service, for operators without their own. It runs on a free port of the loopback
 * interface and keeps its data in DATA_DIR. If the service dies and its server survives, the next start adopts the server.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Cluster, ENVIRONMENT, placeCluster, USER, writeOwned } from './cluster.ts';
import { isConnectionLost } from '../transaction.ts';

/** The lock of the process that owns the embedded server: any fixed number. */
const OWNER_LOCK = 4_707_366_002;
/** How long a dead process may keep the lock. On a busy machine, PostgreSQL needs seconds to notice the death. */
const OWNER_PATIENCE = '5s';
/** The role of the service. It owns nothing. */
const SERVICE = 'freehold_service';
/** Limit for starts that PostgreSQL refuses, and the pauses between checks and between starts. */
const START_ATTEMPTS_MAX = 100;
const PAUSE_MS = 25;
const REFUSED_PAUSE_MS = 100;
/** The pause between looks at a server that ended the owner's connection. */
const LOOK_MS = 500;

/** How the service got its server. */
export type Arrival = 'started' | 'adopted' | 'recovered';

export interface EmbeddedPostgres {
  /** The connection string of the database, by the role of the service. */
  url: string;
  /** The same by the superuser, who owns the tables. */
  ownerUrl: string;
  /** The folder of the cluster. */
  folder: string;
  /** Whether the service started the server, the server recovered from a crash, or it still ran. */
  arrival: Arrival;
  /** Seconds until the server answered. */
  seconds: number;
  /** The log of the server. */
  logFile: string;
  /** Resolves if the server dies. It stays pending if `stop` ends the server. */
  died: Promise<void>;
  /** Stops the server. Committed data stay. */
  stop(): Promise<void>;
}

interface Running {
  pid: number;
  port: number;
}

/**
 * Starts the server of a data folder, or adopts the one that runs there.
 * @param flags more settings, such as `fsync=off` for tests
 * @param onWait called when this process can only wait for PostgreSQL, perhaps several times
 * @throws Error if another process of the service uses the folder
 */
export async function startEmbeddedPostgres(
  dataDir: string,
  flags: string[] = [],
  onWait = () => {},
): Promise<EmbeddedPostgres> {
  const began = performance.now();
  const cluster = await placeCluster(dataDir, onWait);
  const { folder } = cluster;
  const { pid, port, arrival, owner, ended, service } = await takeServer(cluster, dataDir, flags, onWait);
  const stopping = new AbortController();
  const ownerUrl = urlOf(cluster, port, USER);
  return {
    url: Object.assign(new URL(ownerUrl), service).href,
    ownerUrl,
    folder,
    arrival,
    seconds: (performance.now() - began) / 1000,
    logFile: logFileOf(folder),
    died: ended.then(() => deathOf(pid, stopping.signal)),
    async stop() {
      stopping.abort();
      // SIGINT is PostgreSQL's fast shutdown: it ends sessions and writes the checkpoint. The owner releases its lock after
      // that, so that no other process adopts a server that is about to stop.
      signal(pid, 'SIGINT');
      await owner.end().catch(() => {});
      // The server removes this file last. An adopted server may stay longer in the table of processes.
      for (let waited = 0; alive(pid) && existsSync(pidFile(folder)) && waited < 30_000; waited += 20) await sleep(20);
    },
  };
}

/** Returns the address of the database if the server of a data folder runs, for a command beside the service. */
export async function runningUrl(dataDir: string): Promise<string | undefined> {
  const cluster = await placeCluster(dataDir, () => {});
  const running = recorded(cluster.folder);
  return running && urlOf(cluster, running.port, USER);
}

const urlOf = ({ password }: Cluster, port: number, database = 'postgres') =>
  `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`;
const logFileOf = (folder: string) => join(dirname(folder), 'log');
const pidFile = (folder: string) => join(folder, 'postmaster.pid');

/** Runs the server, takes it for this process, and prepares it. Begins anew if the process before it stops the server. */
async function takeServer(cluster: Cluster, dataDir: string, flags: string[], onWait: () => void) {
  for (;;) {
    const server = await run(cluster, flags, onWait);
    const owner = newClient(urlOf(cluster, server.port));
    const ended = new Promise<void>((end) => owner.once('end', end));
    try {
      await own(owner, dataDir);
      const { rowCount } = await owner.query('select from pg_database where datname = $1', [USER]);
      if (!rowCount) await owner.query(`create database ${USER}`);
      return { ...server, owner, ended, service: await prepareService(owner, cluster) };
    } catch (error) {
      void owner.end().catch(() => {});
      if (!isConnectionLost(error)) throw error;
    }
  }
}

/** Waits for the death of a server. A server that survives a crash of a session ends all sessions, and lives on. */
async function deathOf(pid: number, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted && alive(pid) && !isZombie(pid)) await sleep(LOOK_MS, undefined, { ref: false });
  if (stopping.aborted) return new Promise(() => {});
}

const newClient = (url: string) => new pg.Client({ connectionString: url, keepAlive: true }).on('error', () => {});

/** Adopts the running server, or starts one. */
async function run(cluster: Cluster, flags: string[], onWait: () => void): Promise<Running & { arrival: Arrival }> {
  for (let attempt = 1; ; ) {
    const running = recorded(cluster.folder);
    const greeting = running && (await greet(cluster, running.port));
    if (greeting === 'welcome') return { ...running!, arrival: 'adopted' };
    if (greeting === 'wrong password') throw wrongPassword(cluster);
    if (greeting === 'not now') {
      onWait();
      await sleep(PAUSE_MS); // it recovers or shuts down; the next greeting shows which
      continue;
    }
    const { server, complaint } = await launch(cluster, flags, onWait);
    if (server) return server;
    // Sessions of a killed server hold its memory until they notice, and PostgreSQL refuses to start until then.
    if (attempt++ === START_ATTEMPTS_MAX) throw new Error(complaint);
    await sleep(REFUSED_PAUSE_MS);
  }
}

/** Errors name values of rows, such as an email that two accounts want. The log has neither those nor the statements. */
const PRIVATE_LOG = ['log_error_verbosity=terse', 'log_min_error_statement=panic'];
const SETTINGS = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', ...PRIVATE_LOG];

/** Starts a server and waits until it answers. Returns the complaint of a server that refuses to start. */
async function launch(cluster: Cluster, flags: string[], onWait: () => void) {
  const { binaries, folder, identity } = cluster;
  const logFile = logFileOf(folder);
  const port = await freePort();
  writeOwned(logFile, '', identity);
  const log = openSync(logFile, 'a');
  const settings = [...SETTINGS, ...flags];
  // The server gets its own process group: Ctrl-C must reach only the service, which stops the server after its requests.
  const server = spawn(
    join(binaries, 'postgres'),
    ['-D', folder, '-p', String(port), ...settings.flatMap((s) => ['-c', s])],
    { ...identity, cwd: folder, env: ENVIRONMENT, detached: true, stdio: ['ignore', log, log] },
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
  return { complaint: `PostgreSQL did not start. See ${logFile}:\n${readFileSync(logFile, 'utf8')}` };
}

const wrongPassword = ({ folder }: Cluster) =>
  new Error(`The password beside ${folder} does not fit the cluster. Restore both from one backup.`);

/** Returns the server that the folder names, if its process lives. */
function recorded(folder: string): Running | undefined {
  const file = pidFile(folder);
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8').split('\n');
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!(pid > 0 && port > 0 && alive(pid))) return undefined;
  if (!isZombie(pid)) return { pid, port };
  // PostgreSQL takes a zombie for a live server and would refuse to start until init removes it. PostgreSQL finds sessions
  // that still use the memory of the dead server without this file.
  rmSync(file, { force: true });
  return undefined;
}

/** Whether a process is dead and remains only in the table of processes. */
function isZombie(pid: number): boolean {
  try {
    // The state follows the name, which is in parentheses and may contain parentheses.
    return /\) [ZX] [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false; // the process has gone, or the system has no /proc
  }
}

/** A server that starts, recovers or shuts down answers `not now`. */
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

/** Makes the role of the service. Its password follows from that of the superuser, and does not tell it. */
async function prepareService(owner: pg.Client, { password: secret }: Cluster) {
  const password = createHash('sha256').update(`${SERVICE} ${secret}`).digest('base64url');
  const { rowCount } = await owner.query('select from pg_roles where rolname = $1', [SERVICE]);
  if (!rowCount) await owner.query(`create role ${SERVICE} login`);
  await owner.query(`alter role ${SERVICE} password '${password}'`);
  return { username: SERVICE, password };
}

const LOCK_NOT_AVAILABLE = '55P03';

/** Takes the server for this process. The lock ends with its connection, even if the process is killed. */
async function own(client: pg.Client, dataDir: string): Promise<void> {
  await client.connect();
  try {
    await client.query(`set lock_timeout = '${OWNER_PATIENCE}'`);
    await client.query('select pg_advisory_lock($1)', [OWNER_LOCK]);
  } catch (error) {
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
