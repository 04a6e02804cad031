import { describe, expect, inject, it } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { MIGRATIONS } from '../../entities/database/migrations/index.ts';
import { TABLES } from '../../entities/database/tables.ts';
import { newDatabase, newDatabaseUrl } from '../setup/database.ts';
import { administer, withDatabase } from '../setup/postgres.ts';

describe('The schema of the database', () => {
  it('matches the entities: TypeORM would drop only the CHECKs, foreign keys and indexes, which only migrations have', async () => {
    const db = await newDatabase();
    const { upQueries } = await db.source.driver.createSchemaBuilder().log();
    const changes = upQueries
      .map(({ query }) => query)
      .filter(
        (query) =>
          !/DROP CONSTRAINT "(\w+_check|\w+_not_negative|\w+_fkey|payout_key_key|account_servers_off|transfer_\w+)"$|^DROP INDEX /.test(
            query,
          ),
      );
    expect(changes).toEqual([]);
    expect(TABLES.length).toBeGreaterThan(10);
  });

  it('is created once when two processes start at once', async () => {
    const url = inject('postgresUrl');
    const name = `freehold_twice_${process.pid}`;
    await administer(url, `create database ${name}`);
    const opened = await Promise.all([1, 2, 3].map(() => Database.open(withDatabase(url, name))));
    const [counted] = await opened[0]!.query<{ migrations: number; items: number }>(
      'select (select count(*)::int from migrations) as migrations, (select count(*)::int from catalog_item) as items',
    );
    await Promise.all(opened.map((db) => db.close()));
    await administer(url, `drop database ${name} with (force)`);
    expect(counted).toEqual({ migrations: MIGRATIONS.length, items: 18 });
  });

  it.each([
    ['a newer version', 'future-0000000000099'],
    ['a version before the first release', 'Initial0000000000001'],
  ])('refuses to start when %s made it, and names a migration that it does not know', async (_, name) => {
    const url = await newDatabaseUrl();
    await administer(url, `insert into migrations (timestamp, name) values (99, '${name}')`);
    await expect(Database.open(url)).rejects.toThrow(`does not know the migration ${name},`);
  });
});
