/** A migration is safe while the previous version runs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { faultsOf } from './migration-rules.ts';

const FOLDER = 'entities/database/migrations';
/** Earlier migrations are older than the rules. */
const FIRST = '0054';
const versions = [...readFileSync('CHANGELOG.md', 'utf8').matchAll(/^## (\d+\.\d+\.\d+)$/gm)].map(([, name]) => name!);

it('Each migration since the rules keeps them', () => {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.sql') && file >= FIRST);
  const faults = files.flatMap((file) =>
    faultsOf(readFileSync(join(FOLDER, file), 'utf8'), versions).map((fault) => `${file}: ${fault}`),
  );
  expect(faults).toEqual([]);
});

describe('The rules', () => {
  it.each([
    ['alter table server drop column trouble;', /drops something/],
    ['alter table server rename column trouble to words;', /renames something/],
    ['alter table server alter column trouble type jsonb;', /changes a type/],
    ['alter table server alter trouble set not null;', /refuses null/],
    ['-- Safe since 9.9.9: nothing reads it.\nalter table server drop column trouble;', /drops something/],
    ['create index server_trouble on server (trouble);', /keeps writers waiting/],
    ['create index concurrently server_trouble on server (trouble);\nselect 1;', /another statement/],
    ['alter table server add column words text not null;', /Give it a default/],
    ['alter table server add column key uuid default gen_random_uuid();', /into each row/],
    [`alter table server add constraint named check (trouble <> '');`, /not valid/],
  ])('refuse %s', (sql, fault) => {
    expect(faultsOf(sql, ['0.1.0'])).toEqual([expect.stringMatching(fault)]);
  });

  it.each([
    'alter table server add column words text, add column count int not null default 0;',
    'create index concurrently server_trouble on server (trouble);',
    'create table thing (id text primary key);\ncreate index thing_id on thing (id);',
    `alter table server add constraint named check (trouble <> '') not valid;`,
    '-- Safe since 0.1.0: nothing reads it.\nalter table server drop column trouble;',
    'create function f() returns void language plpgsql as $$ begin drop table if exists aside; end $$;',
    '-- A drop table would be wrong here.\nselect 1;',
  ])('allow %s', (sql) => {
    expect(faultsOf(sql, ['0.1.0'])).toEqual([]);
  });
});
