/**
 * The migrations: numbered SQL files. They run in their order, each in its own transaction. A file that makes an index
 * concurrently has no other statement, and runs without a transaction.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const FILE = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** The table of TypeORM with the migrations that the database has. */
export const MIGRATIONS_TABLE = 'migrations';

/** Returns the name in TypeORM's form: it ends with 13 digits, by which TypeORM orders migrations. */
const nameOf = (file: string): string => {
  const [, number, noun] = FILE.exec(file)!;
  return `${noun}-${number!.padStart(13, '0')}`;
};

const CONCURRENT = /^create (?:unique )?index concurrently (\w+)/m;

/** Returns the migration of a numbered file. */
export const migrationOf = (file: string, read = () => readFileSync(join(import.meta.dirname, file), 'utf8')) =>
  class implements MigrationInterface {
    readonly name = nameOf(file);

    get transaction(): boolean {
      return !CONCURRENT.test(read());
    }

    async up(runner: QueryRunner): Promise<void> {
      const sql = read();
      const [, index] = CONCURRENT.exec(sql) ?? [];
      try {
        // No request waits behind the statement, so it waits for older transactions. An interrupted attempt leaves an invalid index.
        if (index) await runner.query('set lock_timeout = 0');
        if (index) await runner.query(`drop index concurrently if exists ${index}`);
        await runner.query(sql);
      } catch (error) {
        if (error instanceof Error) error.message = `${file}: ${error.message}`;
        throw error;
      } finally {
        if (index) await runner.query('reset lock_timeout');
      }
    }

    async down(): Promise<void> {
      throw new Error('Migrations go forward only. Restore a backup made before the upgrade instead.');
    }
  };

/** The classes that TypeORM runs. A merged file never changes: test/database/migrations.sha256 holds its checksum. */
export const MIGRATIONS = readdirSync(import.meta.dirname)
  .filter((file) => FILE.test(file))
  .sort()
  .map((file) => migrationOf(file));
