/**
 * The PostgreSQL of a test run: that of DATABASE_URL, or an embedded one in its own folder. The setup creates a migrated
 * template once. Every test file copies it, so that no test sees the rows of another.
 */
import { existsSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import type { TestProject } from 'vitest/node';
import { Database } from '../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { newFolder, removeFolder } from './spawn.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string;
    templateName: string;
  }
}

export default async function setup(project: TestProject) {
  const given = process.env.DATABASE_URL;
  const folder = given ? undefined : newFolder(folderInMemory());
  const embedded = folder ? await startEmbeddedPostgres(folder, flagsOf(folder)) : undefined;
  const url = given ?? embedded!.ownerUrl;
  const templateName = `freehold_template_${process.pid}`;
  await administer(url, `create database ${templateName}`);
  await makeRole(url);
  const [template, ownerUrl] = [byRole(withDatabase(url, templateName)), withDatabase(url, templateName)];
  await Database.open(template, { ownerUrl }).then((db) => db.close());
  project.provide('postgresUrl', url);
  project.provide('templateName', templateName);
  return async () => {
    await administer(url, `drop database ${templateName} with (force)`);
    await embedded?.stop();
    if (folder) removeFolder(folder);
    failForLog(project.config.env.LOG_REPORT);
    failForLocks(project.config.env.LOCK_REPORT);
  };
}

/**
 * Returns the folder for shared memory, if it has room. The test files create and drop some hundred databases, each with
 * a thousand files. On a disk, the search for free inodes takes longer than the statements of the tests.
 */
function folderInMemory(): string | undefined {
  if (!existsSync(MEMORY)) return undefined;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > MEMORY_BYTES_MIN ? MEMORY : undefined;
}
const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 2 ** 31;

/**
 * Returns the settings of the server. It need not survive a crash, and trusts the role of the service. Its tables are too small
 * for compiled or parallel queries, and its databases do not live until a vacuum.
 */
function flagsOf(folder: string): string[] {
  const file = join(folder, 'pg_hba.conf');
  // Half of the time of a connection goes into its password, and tests open some ten thousand.
  const lines = [`host all ${ROLE} 127.0.0.1/32 trust`, 'host all all 127.0.0.1/32 scram-sha-256'];
  writeFileSync(file, lines.join('\n'));
  return [
    ...['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'wal_level=minimal', 'max_wal_senders=0'],
    ...['checkpoint_timeout=1h', 'autovacuum=off', 'jit=off', 'max_parallel_workers_per_gather=0'],
    ...['max_connections=500', `hba_file=${file}`],
  ];
}

/** Fails the run if a service has printed a line that does not belong into its log (test/setup/log-lines.ts). */
function failForLog(report: string | undefined): void {
  if (!report || !existsSync(report)) return;
  const lines = readFileSync(report, 'utf8');
  rmSync(report);
  throw new Error(`Lines that do not belong into the log:\n${lines.slice(0, 10_000)}`);
}

/** Fails the run if a transaction has locked rows out of order (test/setup/lock-order.ts). */
function failForLocks(report: string | undefined): void {
  if (!report || !existsSync(report)) return;
  const lines = new Set(readFileSync(report, 'utf8').trim().split('\n'));
  rmSync(report);
  throw new Error(`Locks out of order, see entities/database/lock-order.ts:\n${[...lines].slice(0, 50).join('\n')}`);
}

/** The role of the service in tests. */
const ROLE = 'freehold_tests';
/** Makes the role. Several runs may share a server. */
const makeRole = (url: string) =>
  administer(
    url,
    `do $$ begin create role ${ROLE} login password '${ROLE}';
      exception when duplicate_object or unique_violation then null; end $$`,
  );
/** Returns the same database by the role of the service. */
export const byRole = (url: string): string => Object.assign(new URL(url), { username: ROLE, password: ROLE }).href;

/** Returns the same database by the superuser. */
export function asAdministrator(url: string): string {
  const { username, password } = new URL(inject('postgresUrl'));
  return Object.assign(new URL(url), { username, password }).href;
}

export function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

/** Sends a statement as the superuser. */
export async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: new URL(url).username === ROLE ? asAdministrator(url) : url });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
