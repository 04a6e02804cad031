/** Databases to export and import, and the commands that do it. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { SESSION_SQL } from '../../entities/archive/format.ts';
import { listTables } from '../../entities/archive/tables.ts';
import { administer, withDatabase } from './postgres.ts';
import { say } from './say.ts';
import { freePort, MACHINE, newFolder, type OnEnd, removeFolder } from './spawn.ts';
import { SECRET_KEY } from './vault.ts';

const COMMANDS = join(import.meta.dirname, '..', '..', 'commands');
const COMMAND = { export: join(COMMANDS, 'export.ts'), import: join(COMMANDS, 'import.ts') };

type Given = readonly [command: keyof typeof COMMAND, environment: Record<string, string>, ...given: string[]];
const environmentOf = (environment: Record<string, string>) => ({ ...MACHINE, SECRET_KEY, ...environment });

/** Runs a command to its end. */
export const runCommand = (...[command, environment, ...given]: Given) =>
  new Promise<{ code: number; output: string }>((done) => {
    execFile(
      process.execPath,
      [COMMAND[command], ...given],
      { env: environmentOf(environment) },
      (error, stdout, stderr) => done({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    );
  });

/** Starts a command. */
export const startCommand = (...[command, environment, ...given]: Given) =>
  spawn(process.execPath, [COMMAND[command], ...given], {
    env: environmentOf(environment),
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** Makes an empty database, with a role that owns it and a role for the service. @param server its superuser */
export async function emptyDatabase(onEnd: OnEnd, server: string = inject('postgresUrl')) {
  const name = `freehold_import_${randomBytes(4).toString('hex')}`;
  for (const role of ['owner', 'service'])
    await administer(server, `create role ${name}_${role} login password 'secret'`);
  await administer(server, `create database ${name} owner ${name}_owner`);
  onEnd(async () => {
    await administer(server, `drop database ${name} with (force)`);
    for (const role of ['owner', 'service']) await administer(server, `drop role ${name}_${role}`);
  });
  const url = withDatabase(server, name);
  const by = (role: string) => Object.assign(new URL(url), { username: `${name}_${role}`, password: 'secret' }).href;
  const environment = { DATABASE_URL: by('service'), MIGRATION_DATABASE_URL: by('owner') };
  return { url, environment };
}

/** Returns a digest of the rows of each table, in any order of them. Only the identifier of a database is its own. */
export async function digestsOf(url: string): Promise<Record<string, string>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(SESSION_SQL);
    const digests: Record<string, string> = {};
    for (const { name } of await listTables(client, ['migrations', 'own_database'])) {
      const { rows } = await client.query(`select t::text as row from "${name}" t order by t::text collate "C"`);
      const digest = createHash('sha256');
      for (const { row } of rows) digest.update(`${row}\n`);
      digests[name] = `${rows.length} ${digest.digest('hex')}`;
    }
    return digests;
  } finally {
    await client.end();
  }
}

const BINARIES = '/usr/lib/postgresql/15/bin';
export const hasPostgres15 = existsSync(BINARIES);
if (!hasPostgres15) say("Skipped: archives in Debian's PostgreSQL 15, which is not installed (postgresql-15).");

/** Starts a new cluster of Debian's PostgreSQL 15. @returns the URL of its superuser */
export async function startPostgres15(onEnd: OnEnd): Promise<string> {
  const folder = newFolder();
  onEnd(() => removeFolder(folder));
  const isRoot = process.getuid?.() === 0;
  if (isRoot) execFileSync('chown', ['postgres', folder]);
  const run = (program: string, given: string[]) => {
    const [file, ...all] = [
      ...(isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : []),
      ...[join(BINARIES, program), '-D', join(folder, 'data'), ...given],
    ];
    execFileSync(file!, all, { cwd: folder, stdio: 'ignore' });
  };
  run('initdb', ['-U', 'freehold', '-A', 'trust', '--locale=C.UTF-8', '--encoding=UTF8']);
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`, 'fsync=off'];
  const flags = settings.map((setting) => `-c ${setting}`).join(' ');
  run('pg_ctl', ['-w', '-l', join(folder, 'log'), '-o', `-p ${port} ${flags}`, 'start']);
  onEnd(() => run('pg_ctl', ['-m', 'immediate', 'stop']));
  return `postgres://freehold@127.0.0.1:${port}/postgres`;
}
