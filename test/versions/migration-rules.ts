/** Rules for a migration that runs while the previous version serves. They find the common mistakes, not all of them. */

/** Statements that take something away from the previous version. They are right once the last version does without. */
const TAKES: [pattern: RegExp, what: string][] = [
  [/\bdrop (table|column|view|function|schema)\b/i, 'drops something'],
  [/\brename (to|column|constraint)\b/i, 'renames something'],
  [/\balter (column )?\w+ (set data )?type\b/i, 'changes a type'],
  [/\bset not null\b/i, 'refuses null'],
];
const SAFE_SINCE = /^-- Safe since (\d+\.\d+\.\d+)/m;
const CREATED = /\bcreate table (\w+)/gi;
const INDEX = /\bcreate (?:unique )?index (concurrently )?\w+ on (\w+)/gi;
const COLUMN = /\badd column \w+ ([^,;]+)/gi;
const VOLATILE = /\bdefault \(?(gen_random_uuid|clock_timestamp|random|nextval)\(/i;
const CONSTRAINT = /\balter table (\w+)[^;]*?\badd constraint \w+ ([^;]+)/gi;

const withoutComments = (sql: string) => sql.replace(/--.*$/gm, '');
/** A function has statements of its own, which do not run now. */
const withoutFunctions = (sql: string) => sql.replace(/\$\$[\s\S]*?\$\$/g, "''");

/**
 * Returns what is wrong with a migration, as sentences.
 * @param versions the published versions
 */
export function faultsOf(text: string, versions: readonly string[]): string[] {
  const sql = withoutFunctions(withoutComments(text));
  const created = new Set([...sql.matchAll(CREATED)].map(([, table]) => table));
  return [...takes(text, sql, versions), ...indexes(sql, created), ...additions(sql, created)];
}

function takes(text: string, sql: string, versions: readonly string[]): string[] {
  const [, since] = SAFE_SINCE.exec(text) ?? [];
  if (since && versions.includes(since)) return [];
  const found = TAKES.filter(([pattern]) => pattern.test(sql));
  return found.map(
    ([, what]) =>
      `It ${what}, and the last version may need that. Wait for a version that does without, and write "-- Safe since <version>".`,
  );
}

function indexes(sql: string, created: Set<string | undefined>): string[] {
  const all = [...sql.matchAll(INDEX)].filter(([, , table]) => !created.has(table));
  const statements = sql.split(';').filter((one) => one.trim());
  if (all.some(([, concurrently]) => !concurrently))
    return [
      'It keeps writers waiting while it makes an index. Write "create index concurrently", in a file of its own.',
    ];
  return all.length && statements.length > 1 ? ['It makes an index concurrently, and has another statement.'] : [];
}

function additions(sql: string, created: Set<string | undefined>): string[] {
  const faults: string[] = [];
  for (const [, column] of sql.matchAll(COLUMN)) {
    if (/\bnot null\b/i.test(column!) && !/\bdefault\b/i.test(column!))
      faults.push('It adds a column that the inserts of the last version leave out. Give it a default.');
    if (VOLATILE.test(column!)) faults.push('It adds a column whose default PostgreSQL writes into each row.');
  }
  for (const [, table, rest] of sql.matchAll(CONSTRAINT))
    if (!created.has(table) && !/\bnot valid\b|\busing index\b/i.test(rest!))
      faults.push(
        'It proves all rows of a table under a lock. Add the constraint as "not valid", and validate it in the next file.',
      );
  return faults;
}
