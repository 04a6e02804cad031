/** The start of a database: migrations under a lock, and the rights of the service's role. */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { newClient } from './connection.ts';
import { MIGRATIONS } from './migrations/index.ts';
import { runMigrations } from './migrations/run.ts';
import { type DatabaseRole, grantRights, roleOf } from './role.ts';
import { sqlStateOf } from './transaction.ts';

/** The lock of migrations: any fixed number. */
export const MIGRATION_LOCK = 4_707_366_001;
const FORBIDDEN = '42501';
const [LOCK_PATIENCE_MS, LOCK_LOOK_MS] = [20_000, 100];

/** A database has this table until its import has ended. The table names the archive and the finished parts. */
export const IMPORT_TABLE = 'unfinished_import';

/**
 * Migrates the schema, and gives the role of the service its rights. When many processes start at once, one migrates and the
 * others wait.
 * @param ownerUrl absent: the role of the service migrates
 * @returns the role of the service
 */
export async function migrate(url: string, ownerUrl: string | undefined): Promise<DatabaseRole> {
  const owner = await connect(ownerUrl ?? url);
  try {
    await takeLock(owner);
    await refuseUnfinishedImport(owner);
    const done = await knownMigrations(owner);
    await refuseOtherSchema(owner);
    await refuseMissingSchema(owner);
    if (ownerUrl) await refuseOtherDatabase(url);
    // Most starts find no new migration, and need no connection for it.
    if (done < MIGRATIONS.length) await asOwner(owner, ownerUrl !== undefined, () => runMigrations(ownerUrl ?? url));
    if (!ownerUrl) return await roleOf(owner);
    const service = await connect(url);
    const role = await roleOf(service).finally(() => service.end());
    if (!role.isOwner) await asOwner(owner, true, () => grantRights(owner, role.name));
    return role;
  } finally {
    await owner.end();
  }
}

/** @throws Error if the tables lack the rest of an archive */
async function refuseUnfinishedImport(owner: pg.Client): Promise<void> {
  const { rows } = await owner.query('select to_regclass($1) as name', [IMPORT_TABLE]);
  if (rows[0].name)
    throw new Error(
      'An import into this database has not ended. Run npm run import with the same archive again. It goes on where it stopped.',
    );
}

/**
 * Lets work migrate an empty database step by step, under the lock of migrations.
 * @param work gets a connection of the owner, and a function that runs the first migrations up to a number
 * @throws Error if another program migrates, or if the schema is missing or another one has the tables
 */
export async function inMigration<T>(
  url: string,
  ownerUrl: string | undefined,
  work: (owner: pg.Client, migrateTo: (count: number) => Promise<void>) => Promise<T>,
): Promise<T> {
  const owner = await connect(ownerUrl ?? url);
  try {
    await takeLock(owner, LOCK_PATIENCE_MS);
    await refuseOtherSchema(owner);
    await refuseMissingSchema(owner);
    if (ownerUrl) await refuseOtherDatabase(url);
    return await asOwner(owner, ownerUrl !== undefined, () =>
      work(owner, (count) => runMigrations(ownerUrl ?? url, MIGRATIONS.slice(0, count))),
    );
  } finally {
    await owner.end();
  }
}

/**
 * Waits for the lock of migrations. A statement that waits for it would keep an index from being made concurrently, so this
 * asks again and again. PostgreSQL may notice the death of the process that had the lock some seconds late.
 * @throws Error if another process keeps the lock for longer than the patience
 */
async function takeLock(owner: pg.Client, patienceMs = Number.POSITIVE_INFINITY): Promise<void> {
  for (const since = performance.now(); ; await sleep(LOCK_LOOK_MS)) {
    const { rows } = await owner.query('select pg_try_advisory_lock($1) as mine', [MIGRATION_LOCK]);
    if (rows[0].mine) return;
    if (performance.now() - since > patienceMs)
      throw new Error('Another process migrates this database or imports into it. Wait until it has ended.');
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = newClient(url);
  await client.connect();
  return client;
}

/** Returns the names of the migrations that this program knows, in their order. */
export const migrationNames = (): string[] => MIGRATIONS.map((migration) => new migration().name);

/**
 * Returns the number of migrations that the database has.
 * @throws Error if this program does not know one of them
 */
async function knownMigrations(owner: pg.Client): Promise<number> {
  const known = new Set(migrationNames());
  const { rows: tables } = await owner.query(`select to_regclass('migrations') as name`);
  const { rows: done } = tables[0].name ? await owner.query('select name from migrations order by id') : { rows: [] };
  const unknown = done.find(({ name }) => !known.has(name));
  if (!unknown) return done.length;
  throw new Error(
    `This program does not know the migration ${unknown.name}, which the database has. ` +
      'A newer version made this database, or one before the first release. ' +
      'Start that version, or restore a backup made before the upgrade.',
  );
}

/** @throws Error if the database has the tables of a service, but in another schema. New ones would hide them. */
async function refuseOtherSchema(owner: pg.Client): Promise<void> {
  const { rows } = await owner.query(`
    select nspname as schema from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where relname in ('audit_entry', 'transfer', 'migrations') and to_regclass('migrations') is null
      group by nspname having count(*) = 3 order by nspname limit 1`);
  if (rows.length)
    throw new Error(
      `The schema ${rows[0].schema} of the database has the tables of the service. Name it in each URL of the database: ` +
        `?options=-c%20search_path%3D${encodeURIComponent(rows[0].schema)}`,
    );
}

/** @throws Error if the role cannot use the schema that the URL names */
async function refuseMissingSchema(owner: pg.Client): Promise<void> {
  const { rows } = await owner.query(
    `select current_schema() as schema, current_user as role, current_setting('search_path') as path`,
  );
  const { schema, role, path } = rows[0];
  const wanted = path.replace(/,\s*pg_temp$/, '');
  if (schema === null || /^pg_temp_\d+$/.test(schema))
    throw new Error(
      `The database has no schema ${wanted} that the role ${role} may use. As the superuser, in this database: ` +
        `create schema ${wanted} authorization ${owner.escapeIdentifier(role)}`,
    );
}

/** Locks hold in one database, so a free lock of migrations shows another one. @throws Error if the two URLs name two databases */
async function refuseOtherDatabase(url: string): Promise<void> {
  const service = await connect(url);
  const { rows } = await service
    .query('select pg_try_advisory_lock($1) as free', [MIGRATION_LOCK])
    .finally(() => service.end());
  if (rows[0].free) throw new Error('MIGRATION_DATABASE_URL names another database than DATABASE_URL.');
}

/** Does work that needs the owner of the tables. @throws Error that names the variable of a role without the rights */
async function asOwner<T>(owner: pg.Client, isOwnerGiven: boolean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (sqlStateOf(error) !== FORBIDDEN) throw error;
    await owner.query('rollback');
    const { name } = await roleOf(owner);
    throw new Error(
      isOwnerGiven
        ? `The role ${name} of MIGRATION_DATABASE_URL does not own the tables, so it may not migrate the database. ` +
            'Name their owner there, and another role in DATABASE_URL.'
        : `The role ${name} of DATABASE_URL may not migrate the database. Set MIGRATION_DATABASE_URL to the role that owns its tables.`,
    );
  }
}
