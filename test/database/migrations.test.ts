/** Migrations are immutable: a database runs each one once. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const FOLDER = 'entities/database/migrations';
const CHECKSUMS = 'test/database/migrations.sha256';

const files = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.sql'))
  .sort();
const sha256 = (file: string) =>
  createHash('sha256')
    .update(readFileSync(join(FOLDER, file)))
    .digest('hex');
const checksums = readFileSync(CHECKSUMS, 'utf8').trimEnd().split('\n');

it('keeps every merged migration as it is', () => {
  const present = files.map((file) => `${sha256(file)}  ${file}`);
  const changed = checksums.filter((line) => !present.includes(line)).map((line) => line.split('  ')[1]);
  expect(
    changed,
    `Undo your change of ${changed}: databases that ran it keep their schema. Add a new migration.`,
  ).toEqual([]);
});

it('has the checksum of every migration', () => {
  const named = new Set(checksums.map((line) => line.split('  ')[1]));
  const missing = files.filter((file) => !named.has(file));
  const lines = missing.map((file) => `${sha256(file)}  ${file}`).join('\n');
  expect(missing, `Add to ${CHECKSUMS}, once it is ready to be merged:\n${lines}\n`).toEqual([]);
});

it('numbers migrations from 1 on, each number once', () => {
  expect(files.map((file) => Number(file.slice(0, 4)))).toEqual(files.map((_, index) => index + 1));
});
