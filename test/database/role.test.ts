/** The service uses the database by a role that owns nothing and can only add to the records. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { STATEMENTS } from '../../entities/database/statement.ts';
import { rewriteTables } from '../../entities/reseal-files.ts';
import { newDatabase, newDatabaseUrl } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';
import { administer, withDatabase } from '../setup/postgres.ts';
import { importEntities } from '../setup/sources.ts';
import { spawnService } from '../setup/spawn.ts';

/** Makes an empty database with a role that owns it and a role for the service. */
async function newRoles() {
  const name = `freehold_role_${randomBytes(4).toString('hex')}`;
  const server = inject('postgresUrl');
  for (const role of ['owner', 'service'])
    await administer(server, `create role ${name}_${role} login password 'secret'`);
  await administer(server, `create database ${name} owner ${name}_owner`);
  onTestFinished(async () => {
    await administer(server, `drop database ${name} with (force)`);
    for (const role of ['owner', 'service']) await administer(server, `drop role ${name}_${role}`);
  });
  const by = (role: string) =>
    Object.assign(new URL(withDatabase(server, name)), { username: `${name}_${role}`, password: 'secret' }).href;
  return { name, owner: by('owner'), service: by('service') };
}

/** Starts and stops the service. @returns its warnings */
async function warningsOf(environment: Record<string, string>): Promise<string> {
  const warn = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  await (await startFreehold({ ROLES: 'api', ...environment })).stop();
  return warn.mock.calls.join('\n');
}

describe('The role of the service', () => {
  it.each([
    'update transfer set amount_micros = 1',
    'delete from transfer',
    'truncate transfer',
    'delete from canary',
    'update event set data = null',
    'update audit_entry set action = null',
    'delete from audit_entry',
    'delete from audit_link',
    'update audit_signature set signed_text = null',
    'delete from account',
    'delete from server',
    'delete from migrations',
    'alter table audit_entry disable trigger all',
    'drop trigger transfer_append_only on transfer',
    'create table mine (a int)',
    `set session_replication_role = replica`,
  ])('may not %s', async (sql) => {
    const db = await newDatabase();
    await expect(db.query(sql)).rejects.toMatchObject({ code: '42501' });
  });

  it('is no superuser and owns no table, also in the embedded database', async () => {
    const service = await spawnService();
    onTestFinished(() => void service.process.kill('SIGKILL'));
    // The warning comes from the catalogue of PostgreSQL.
    expect(service.output()).toContain('Database');
    expect(service.output()).not.toContain('owns the tables');
    await service.stop();
  });

  it('gets its rights from the role that migrates, at the first start and after upgrades', async () => {
    const { owner, service } = await newRoles();
    for (let i = 0; i < 2; i++) {
      const db = await Database.open(service, { poolSize: 2, ownerUrl: owner });
      expect(db.role).toMatchObject({ isOwner: false });
      expect(await db.query('select count(*)::int as rows from account')).toEqual([{ rows: 0 }]);
      await db.close();
    }
    const client = new pg.Client({ connectionString: owner });
    await client.connect();
    const { rows } = await client.query(`select tableowner from pg_tables where schemaname = 'public' group by 1`);
    await client.end();
    expect(rows).toEqual([{ tableowner: new URL(owner).username }]);
  });

  it('leaves the files with sealed values to the role of migrations, and that one the WAL to a superuser', async () => {
    const { owner, service } = await newRoles();
    await Database.open(service, { poolSize: 2, ownerUrl: owner }).then((db) => db.close());
    const client = new pg.Client({ connectionString: owner });
    await client.connect();
    onTestFinished(() => client.end());
    const file = async () => (await client.query(`select pg_relation_filepath('totp') as file`)).rows[0].file;
    const before = await file();
    const all = await rewriteTables(undefined);
    expect(all).toContain('vacuum full totp');
    const remaining = await rewriteTables(owner);
    expect(remaining).toEqual(all.slice(all.indexOf('select pg_switch_wal()')));
    expect(await file()).not.toBe(before);
  });

  it('starts without the other role once the tables are there, and names the missing variable before that', async () => {
    const { owner, service } = await newRoles();
    await expect(Database.open(service)).rejects.toThrow(/may not migrate the database. Set MIGRATION_DATABASE_URL/);
    await Database.open(service, { ownerUrl: owner }).then((db) => db.close());
    await Database.open(service).then((db) => db.close());
  });

  it('uses the schema that the options of the URLs name, and refuses a start that would hide its tables', async () => {
    const { owner, service } = await newRoles();
    await administer(owner, 'create schema shop');
    const inShop = (url: string) => `${url}?options=-c%20search_path%3Dshop`;
    const db = await Database.open(inShop(service), { poolSize: 2, ownerUrl: inShop(owner) });
    expect(await db.query(`select to_regclass('shop.account') is not null as shop, current_schema()`)).toEqual([
      { shop: true, currentSchema: 'shop' },
    ]);
    await db.close();
    await expect(Database.open(service, { ownerUrl: owner })).rejects.toThrow(
      'The schema shop of the database has the tables of the service. Name it in each URL',
    );
  });

  it('names the command that makes a missing schema', async () => {
    const { name, owner, service } = await newRoles();
    const inShop = (url: string) => `${url}?options=-c%20search_path%3Dshop`;
    await expect(Database.open(inShop(service), { ownerUrl: inShop(owner) })).rejects.toThrow(
      `The database has no schema shop that the role ${name}_owner may use. As the superuser, in this database: ` +
        `create schema shop authorization "${name}_owner"`,
    );
  });

  it('refuses a start whose two URLs name two databases, and changes neither', async () => {
    const [{ service }, { owner }] = [await newRoles(), await newRoles()];
    await expect(Database.open(service, { ownerUrl: owner })).rejects.toThrow(
      'MIGRATION_DATABASE_URL names another database than DATABASE_URL.',
    );
    const client = new pg.Client({ connectionString: owner });
    await client.connect();
    onTestFinished(() => client.end());
    expect((await client.query(`select to_regclass('migrations') as name`)).rows).toEqual([{ name: null }]);
  });

  it('is not the owner by mistake: a start with exchanged roles says so, before and after the migrations', async () => {
    const { name, owner, service } = await newRoles();
    const refusal = new RegExp(`The role ${name}_service of MIGRATION_DATABASE_URL does not own the tables`);
    await expect(Database.open(owner, { ownerUrl: service })).rejects.toThrow(refusal);
    await Database.open(service, { ownerUrl: owner }).then((db) => db.close());
    expect(await warningsOf({ DATABASE_URL: owner, MIGRATION_DATABASE_URL: service })).toContain(
      `The role ${name}_owner of DATABASE_URL is a superuser or owns the tables, so a flaw could change the records. Name a role there`,
    );
  });

  it('needs the owner of the tables for its rights, and not any other role', async () => {
    const { name, owner, service } = await newRoles();
    await Database.open(service, { ownerUrl: owner }).then((db) => db.close());
    await expect(Database.open(service, { ownerUrl: service })).rejects.toThrow(
      `The role ${name}_service of MIGRATION_DATABASE_URL does not own the tables`,
    );
  });

  it('may not do a later migration either', async () => {
    const url = await newDatabaseUrl();
    await administer(url, 'delete from migrations where id = (select max(id) from migrations)');
    await expect(Database.open(url)).rejects.toThrow(/may not migrate the database. Set MIGRATION_DATABASE_URL/);
  });

  it('may be the owner, but then the start warns', async () => {
    const { owner } = await newRoles();
    expect(await warningsOf({ DATABASE_URL: owner })).toMatch(
      /The role \w+_owner of DATABASE_URL owns the tables, so a flaw could change the records. Set MIGRATION_DATABASE_URL/,
    );
  });
});

describe('Every table', () => {
  it('gives the role the right to delete where a statement deletes', async () => {
    await importEntities();
    const deleted = STATEMENTS.flatMap(({ text }) =>
      [...text.matchAll(/\bdelete from (\w+)/g)].map(([, table]) => table),
    );
    expect(deleted.length).toBeGreaterThan(10);
    const db = await newDatabase();
    const refused = await db.query(
      `select distinct name from unnest($1::text[]) as name where not has_table_privilege(name, 'delete')`,
      [deleted],
    );
    expect(refused).toEqual([]);
  });

  it('has rights of the role, and none of the public', async () => {
    const client = new pg.Client({ connectionString: await newDatabaseUrl() });
    await client.connect();
    const { rows } = await client.query(`
      select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
        and not has_table_privilege(current_user, oid, 'select')`);
    const { rows: open } = await client.query(`
      select grantee from information_schema.role_table_grants where table_schema = 'public' and grantee = 'PUBLIC'`);
    await client.end();
    expect([rows, open]).toEqual([[], []]);
  });
});
