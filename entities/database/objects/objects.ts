/**
 * The objects of the database. Its owner could show a proof other rows than the service, by a view, a cast or a collation.
 * So the proof refuses every object, of any kind, that neither PostgreSQL brings along nor the migrations make.
 *
 * Such an object must not change what the statements of this file read. PostgreSQL finds its own functions and operators
 * first if the types of their arguments fit exactly. So each constant has its type here, and no value becomes text.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Transaction } from '../transaction.ts';

/** The definitions of objects by their kinds and names. The name of an object in the schema of the service lacks the schema. */
export type Objects = Record<string, string>;

/** How an object differs from the migrations. */
export interface Difference {
  /** Its kind and name, such as `table column transfer.id`. */
  name: string;
  /** Its definition in the database. Absent: the object is missing. */
  definition?: string;
  /** Whether the migrations make it, too. */
  isKnown: boolean;
}

/** A test prints this file from a new database. */
const FILE = join(import.meta.dirname, 'objects.json');

/** The first object id of objects that PostgreSQL does not bring along (FirstNormalObjectId). */
const FIRST = `'16384'::oid`;
/** Object ids that are the same in every database. */
const [PG_CATALOG, PG_TOAST, PG_CLASS] = [`'11'::oid`, `'99'::oid`, `'1259'::oid`];

/** Catalogs of objects that change no read. Only superusers can read those of `pg_user_mapping`. */
const HARMLESS = new Set([
  ...['pg_default_acl', 'pg_enum', 'pg_largeobject_metadata', 'pg_user_mapping'],
  ...['pg_publication', 'pg_publication_namespace', 'pg_publication_rel'],
]);
/** The columns that define an object, by its catalog. For objects of other catalogs, the name is enough. */
const DEFINITIONS: Record<string, string> = {
  pg_attrdef: 'pg_get_expr(adbin, adrelid)',
  pg_class: `relkind, relpersistence, case when relrowsecurity then 'row security' end as rows, pg_get_indexdef(oid)`,
  pg_constraint: 'pg_get_constraintdef(oid)',
  pg_proc: `case when prokind <> 'a'::"char" then pg_get_functiondef(oid) end`,
  pg_trigger: 'tgenabled, pg_get_triggerdef(oid)',
};
/**
 * Objects that are parts of others, by their catalog. PostgreSQL keeps large values in tables of their own. PostgreSQL 18 has
 * a constraint for each column that is not null. Each foreign key has triggers.
 */
const PARTS: Record<string, string> = {
  pg_class: `relnamespace = ${PG_TOAST} and (relkind = 't'::"char" or relkind = 'i'::"char")`,
  pg_constraint: `contype = 'n'::"char"`,
  pg_trigger: `tgisinternal and tgenabled = 'O'::"char"`,
};
/** Each session with temporary tables leaves these two schemas. Tables in them count. */
const TEMPORARY_SCHEMA = /^schema pg_(toast_)?temp_\d+$/;

/** Finds the catalogs of this database. Another table may have the name of the catalog of tables. */
const CATALOGS = `
  select pg_class.oid, relname as name
    from pg_catalog.pg_class join pg_catalog.pg_attribute on attrelid = pg_class.oid and attname = 'oid'::name
    where pg_class.tableoid = ${PG_CLASS} and relnamespace = ${PG_CATALOG} and pg_class.oid < ${FIRST}
      and relkind = 'r'::"char" and not relisshared`;
const COLUMNS = `
  select object.type, identity, format_type(atttypid, atttypmod), attcollation::regcollation,
      case when attnotnull then 'not null' end as nulls, attgenerated, attidentity
    from pg_catalog.pg_attribute join pg_catalog.pg_class on pg_class.oid = attrelid
      cross join lateral pg_identify_object(${PG_CLASS}, attrelid, attnum::int4) as object
    where attrelid >= ${FIRST} and relkind = 'r'::"char" and attnum > '0'::int2 and not attisdropped`;
const INHERITING_TABLES = `
  select 'inheriting table' as type, identity
    from pg_catalog.pg_inherits cross join lateral pg_identify_object(${PG_CLASS}, inhrelid, '0'::int4) as object
    where inhrelid >= ${FIRST}`;

/**
 * Lists the objects that PostgreSQL does not bring along. It also sets the search path of the transaction. Temporary tables
 * come last there.
 */
export async function listObjects(tx: Transaction): Promise<Objects> {
  const [found] = await tx.query<{ schema: string }>(
    'select pg_catalog.quote_ident(pg_catalog.current_schema()::pg_catalog.text) as schema',
  );
  const { schema } = found!;
  await tx.query(`set local search_path = pg_catalog, ${schema}, pg_temp`);
  const catalogs = await tx.query<{ oid: number; name: string }>(CATALOGS);
  const statements = catalogs
    .filter(({ name }) => !HARMLESS.has(name))
    .map(
      ({ oid, name }) => `
        select object.type, identity${name in DEFINITIONS ? `, ${DEFINITIONS[name]}` : ''}
          from pg_catalog.${name} cross join lateral pg_identify_object('${oid}'::oid, oid, '0'::int4) as object
          where oid >= ${FIRST}${name in PARTS ? ` and not (${PARTS[name]})` : ''}`,
    );
  const objects: Objects = {};
  for (const statement of [...statements, COLUMNS, INHERITING_TABLES])
    for (const { type, identity, ...definition } of await tx.query<Record<string, unknown>>(statement)) {
      const name = `${type} ${identity}`.replaceAll(` ${schema}.`, ' ');
      if (name !== `schema ${schema}` && !TEMPORARY_SCHEMA.test(name)) objects[name] = textOf(definition, schema);
    }
  return objects;
}

/** The schema of the service may have any name. Its role changes the search path of some functions. */
const SEARCH_PATH = /^ SET search_path TO .*\n/m;
const textOf = (definition: Record<string, unknown>, schema: string): string =>
  Object.values(definition)
    .filter((value) => value !== null && value !== '' && value !== '-')
    .join(' ')
    .replace(` ${schema}.`, ' ')
    .replace(SEARCH_PATH, '');

/** Returns the objects that are not as the migrations make them. See `listObjects`. */
export async function findDifferences(tx: Transaction): Promise<Difference[]> {
  const known: Objects = JSON.parse(readFileSync(FILE, 'utf8'));
  const objects = await listObjects(tx);
  return [...new Set([...Object.keys(objects), ...Object.keys(known)])]
    .filter((name) => objects[name] !== known[name])
    .map((name) => ({
      name,
      ...(name in objects && { definition: objects[name]! }),
      isKnown: name in known,
    }));
}
