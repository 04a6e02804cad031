/** The migrations: numbered SQL files. They run in their order, each in its own transaction. */
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

const migrationOf = (file: string) =>
  class implements MigrationInterface {
    readonly name = nameOf(file);

    async up(runner: QueryRunner): Promise<void> {
      await runner.query(readFileSync(join(import.meta.dirname, file), 'utf8'));
    }

    async down(): Promise<void> {
      throw new Error('Migrations go forward only. Restore a backup made before the upgrade instead.');
    }
  };

/** The classes that TypeORM runs. A merged file never changes: test/database/migrations.sha256 holds its checksum. */
export const MIGRATIONS = readdirSync(import.meta.dirname)
  .filter((file) => FILE.test(file))
  .sort()
  .map(migrationOf);
