/** The start of a database: migrations under a lock, and the rights of the service's role. */
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { newClient, withSchema } from './connection.ts';
import { MIGRATIONS } from './migrations/index.ts';
import { type DatabaseRole, grantRights, roleOf } from './role.ts';
import { sqlStateOf } from './transaction.ts';

/** The lock of migrations: any fixed number. */
const MIGRATION_LOCK = 4_707_366_001;
const FORBIDDEN = '42501';

/**
 * Migrates the schema, and gives the role of the service its rights. When many processes start at once, one migrates and the
 * others wait.
 * @param ownerUrl absent: the role of the service migrates
 * @returns the role of the service
 */
export async function migrate(url: string, ownerUrl: string | undefined): Promise<DatabaseRole> {
  const owner = await connect(ownerUrl ?? url);
  try {
    await owner.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    const done = await knownMigrations(owner);
    await refuseOtherSchema(owner);
    await refuseMissingSchema(owner);
    if (ownerUrl) await refuseOtherDatabase(url);
    // Most starts find no new migration, and need no connection for it.
    if (done < MIGRATIONS.length) await asOwner(owner, ownerUrl !== undefined, () => run(ownerUrl ?? url));
    if (!ownerUrl) return await roleOf(owner);
    const service = await connect(url);
    const role = await roleOf(service).finally(() => service.end());
    if (!role.isOwner) await asOwner(owner, true, () => grantRights(owner, role.name));
    return role;
  } finally {
    await owner.end();
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = newClient(url);
  await client.connect();
  return client;
}

/**
 * Returns the number of migrations that the database has.
 * @throws Error if this program does not know one of them
 */
async function knownMigrations(owner: pg.Client): Promise<number> {
  const known = new Set(MIGRATIONS.map((migration) => new migration().name));
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
async function asOwner(owner: pg.Client, isOwnerGiven: boolean, work: () => Promise<void>): Promise<void> {
  try {
    await work();
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

/** Runs the missing migrations. */
async function run(url: string): Promise<void> {
  const source = new DataSource({
    type: 'postgres',
    url: withSchema(url),
    poolSize: 1,
    migrations: MIGRATIONS,
    migrationsTransactionMode: 'each',
    applicationName: 'freehold migrations',
  });
  await source.initialize();
  await source.runMigrations().finally(() => source.destroy());
}
