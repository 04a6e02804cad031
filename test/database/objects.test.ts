/** The proof refuses every object of the database that neither PostgreSQL nor the migrations make. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { type Difference, findDifferences, listObjects } from '../../entities/database/objects/objects.ts';
import { asSuperuser, newDatabase, newDatabaseUrl } from '../setup/database.ts';
import { administer } from '../setup/postgres.ts';

/** Returns what is wrong after the attack. */
async function differencesAfter(sql: string): Promise<Difference[]> {
  const db = await newDatabase();
  await asSuperuser(db, sql);
  return db.transaction(findDifferences);
}

/** The attack, and one of the objects that it makes. */
const FOREIGN: Record<string, [sql: string, name: string]> = {
  'a view in the place of a table of sums': [
    `alter table spending_month rename to kept; create view spending_month as select * from kept`,
    'view spending_month',
  ],
  'a policy': ['create policy hide on audit_entry using (false)', 'policy hide on audit_entry'],
  'a rule': ['create rule hide as on delete to event do instead nothing', 'rule hide on event'],
  'a table that inherits from one of the service': [
    'create table kid () inherits (audit_entry)',
    'inheriting table kid',
  ],
  'a table in another schema': [
    'create schema freehold_tests; create table freehold_tests.transfer (like public.transfer)',
    'table freehold_tests.transfer',
  ],
  'a table among those of PostgreSQL': [
    'set allow_system_table_mods = on; create table pg_catalog.transfer (like public.transfer)',
    'table pg_catalog.transfer',
  ],
  'a trigger': [
    'create trigger hide before insert on transfer for each row execute function refuse_change()',
    'trigger hide on transfer',
  ],
  'a cast': [
    `create function units_of(text) returns numeric immutable language sql as 'select 0.0';
      create cast (text as numeric) with function units_of(text)`,
    'cast (pg_catalog.text AS numeric)',
  ],
  'an operator': [
    `create function never(text, text[]) returns boolean language sql immutable as 'select false';
      create operator = (leftarg = text, rightarg = text[], function = never)`,
    'operator =(pg_catalog.text,pg_catalog.text[])',
  ],
  'a function in the place of a column': [
    `alter table audit_entry rename column action to action_was;
      create function action(audit_entry) returns text language sql stable as 'select $1.action_was'`,
    'function action(public.audit_entry)',
  ],
  'a function in the place of one of PostgreSQL': [
    `set allow_system_table_mods = on; create schema aside; alter function pg_catalog.encode(bytea, text) set schema aside;
      create function pg_catalog.encode(bytea, text) returns text language sql immutable as 'select aside.encode($1, $2)'`,
    'function pg_catalog.encode(pg_catalog.bytea,pg_catalog.text)',
  ],
  'an operator class': [
    'create operator class quiet for type text using btree as function 1 bttextcmp(text, text)',
    'operator class quiet USING btree',
  ],
  'a type': ['create domain numeric as pg_catalog.numeric', 'type "numeric"'],
  'a language': ['create language other handler plpgsql_call_handler', 'language other'],
  'an access method': ['create access method other type index handler bthandler', 'access method other'],
  'a conversion': [`create default conversion other for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8`, 'conversion other'],
  'an index': [`create index other on transfer (id) where kind = 'hold'`, 'index other'],
  'a disabled trigger of a foreign key': [
    `do $$ begin execute (select format('alter table transfer disable trigger %I', tgname) from pg_trigger
      where tgrelid = 'transfer'::regclass and tgisinternal limit 1); end $$`,
    'trigger "RI_ConstraintTrigger_',
  ],
};

/** The attack, an object of the migrations, and its definition after the attack. */
const CHANGED: Record<string, [sql: string, name: string, definition?: unknown]> = {
  'another collation of a column': [
    `create collation public.quiet (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
      alter table audit_link alter column entry_id type text collate quiet`,
    'table column audit_link.entry_id',
    'text quiet not null',
  ],
  'another type of a column': [
    'alter table usage_day alter column total_micros type numeric',
    'table column usage_day.total_micros',
    'numeric not null',
  ],
  'row security': ['alter table audit_entry enable row level security', 'table audit_entry', 'r p row security'],
  'a disabled trigger': [
    'alter table transfer disable trigger transfer_append_only',
    'trigger transfer_append_only on transfer',
    expect.stringMatching(/^D CREATE TRIGGER/),
  ],
  'another function': [
    `create or replace function refuse_change() returns trigger language plpgsql as 'begin return new; end'`,
    'function refuse_change()',
    expect.stringContaining('begin return new; end'),
  ],
  'a removed constraint': [
    'alter table transfer drop constraint transfer_accounts_check',
    'table constraint transfer_accounts_check on transfer',
  ],
};

describe('The proof of the objects', () => {
  it('finds nothing in a new database', async () => {
    expect(await differencesAfter('select')).toEqual([]);
  });

  it.each(Object.entries(FOREIGN))('refuses %s', async (_, [sql, name]) => {
    const found = await differencesAfter(sql);
    expect(found.some((one) => one.name.startsWith(name) && !one.isKnown)).toBe(true);
  });

  it.each(Object.entries(CHANGED))('names %s', async (_, [sql, name, definition]) => {
    expect(await differencesAfter(sql)).toContainEqual({
      name,
      ...(definition !== undefined && { definition }),
      isKnown: true,
    });
  });

  it('refuses temporary tables, and an event trigger that could make them', async () => {
    const url = await newDatabaseUrl();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('create temporary table transfer (id text)');
    const { rows } = await client.query(`select current_setting('server_version_num')::int >= 170000 as has_login`);
    // Before PostgreSQL 17, no event trigger sees a login.
    const event = rows[0].has_login ? 'login' : 'ddl_command_end';
    await administer(
      url,
      `create function lie() returns event_trigger language plpgsql as 'begin null; end';
        create event trigger liar on ${event} execute function lie()`,
    );
    const db = await Database.open(url, { poolSize: 2 });
    onTestFinished(() => db.close());
    const names = (await db.transaction(findDifferences)).map(({ name }) => name);
    const table = expect.stringMatching(/^table pg_temp_\d+\.transfer$/);
    expect(names).toEqual(expect.arrayContaining(['event trigger liar', 'function lie()', table]));
  });
});

describe('The list of objects', () => {
  it('is that of a new database, in every version of PostgreSQL', async () => {
    const db = await newDatabase();
    const objects = await db.transaction(listObjects);
    const sorted = Object.fromEntries(Object.entries(objects).sort(([one], [other]) => (one < other ? -1 : 1)));
    await expect(`${JSON.stringify(sorted, null, 2)}\n`).toMatchFileSnapshot(
      '../../entities/database/objects/objects.json',
    );
  });

  it('is the same in another schema', async () => {
    const url = await newDatabaseUrl();
    const db = await Database.open(url, { poolSize: 2 });
    await asSuperuser(db, 'alter schema public rename to agent; create schema public').finally(() => db.close());
    const moved = await Database.open(`${url}?options=-c%20search_path%3Dagent`, { poolSize: 2 });
    onTestFinished(() => moved.close());
    expect(await moved.transaction(findDifferences)).toEqual([
      { name: 'schema public', definition: '', isKnown: false },
    ]);
  });
});

it('A temporary table hides no table of the service', async () => {
  const db = await newDatabase();
  const [found] = await db.transaction(async (tx) => {
    await tx.query('create temporary table transfer (id text) on commit drop');
    return tx.query(`select 'transfer'::regclass = 'public.transfer'::regclass as seen`);
  });
  expect(found).toEqual({ seen: true });
});
