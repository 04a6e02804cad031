/**
 * Records the locks of every transaction of this process, and reports each that is out of the order of
 * entities/database/lock-order.ts. It listens at the driver, so it also hears TypeORM's statements.
 *
 * After a statement that locks rows, it asks the same connection for the rows that the transaction has locked. It reports a
 * row that comes too late, with both statements. test/setup/postgres.ts fails the run after a report.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { LOCK_ORDER, UNDER_ACCOUNT } from '../../entities/database/lock-order.ts';

/** The file of reports. Unset: the recorder is off. */
const REPORT = process.env.LOCK_REPORT;

/** A process has one recorder, although vitest loads this module twice. */
const shared = globalThis as { lockRecorder?: { tell(line: string): void } };
const isFirst = REPORT !== undefined && !shared.lockRecorder;
shared.lockRecorder ??= { tell: (line) => appendFileSync(REPORT!, `${line}\n`) };
const recorder = shared.lockRecorder;

/** Returns the reports of the work. They do not fail the run. */
export async function reportsOf(work: () => Promise<unknown>): Promise<string[]> {
  const [{ tell }, lines] = [recorder, [] as string[]];
  recorder.tell = (line) => lines.push(line);
  await work().finally(() => (recorder.tell = tell));
  return lines;
}

const RANK = new Map(LOCK_ORDER.map(([table], rank) => [table, rank]));
const KEY = new Map(LOCK_ORDER);

/** The locks of a statement in one table. */
interface Locks {
  table: string;
  /** It does not wait for others, so it may come at any time. */
  skipsLocked: boolean;
  /** It locks its rows in the order of their key. */
  ordered: boolean;
  /** It may insert rows, which are no locks. */
  upserts: boolean;
  /** It is a worker's own task, which comes after all others. */
  isOwnTask: boolean;
}
interface Held {
  table: string;
  key: string;
  /** The transaction has inserted it, so no other one waits for it. */
  isNew: boolean;
  sql: string;
}
interface LockedRow {
  table: string;
  key: string;
  isFresh: boolean;
}
type Savepoints = [name: string, held: number][];
type Query = (this: object, ...given: unknown[]) => unknown;

const parsed = new Map<string, Locks[]>();

/** Returns the tables whose rows a statement locks, in the order of its text. */
export function locksOf(sql: string): Locks[] {
  let locks = parsed.get(sql);
  if (!locks) {
    locks = [
      ...new Map(findLocks(sql.replace(/'[^']*'/g, "''").toLowerCase()).map((one) => [one.table, one])).values(),
    ];
    parsed.set(sql, locks);
  }
  return locks;
}

function findLocks(sql: string): Locks[] {
  const found: (Locks & { at: number })[] = [];
  const add = (at: number, table: string | undefined, more: Partial<Locks> = {}) => {
    const none = { skipsLocked: false, ordered: false, upserts: false };
    const isOwnTask = table === 'task' && sql.includes('leased_by = $3');
    if (table && !CTE_NAME(sql, table)) found.push({ at, table, isOwnTask, ...none, ...more });
  };
  for (const match of sql.matchAll(/(?<!for |for no key |do )\bupdate\s+(?:only\s+)?"?(\w+)"?/g))
    add(match.index, match[1]);
  for (const match of sql.matchAll(/\bdelete\s+from\s+"?(\w+)"?/g)) add(match.index, match[1]);
  for (const match of sql.matchAll(
    /\binsert\s+into\s+"?(\w+)"?(?:(?!\binsert\s+into\b|\bdo nothing\b)[\s\S])*?\bdo update\b/g,
  ))
    add(match.index, match[1], { upserts: true, ordered: /\border\s+by\b/.test(match[0]) });
  for (const match of sql.matchAll(/\bfor\s+(?:no key )?(?:update|share)(?:\s+of\s+(\w+))?(\s+skip\s+locked)?/g)) {
    const select = selectBefore(sql, match.index);
    const [skipsLocked, ordered] = [Boolean(match[2]), /\border\s+by\b/.test(select)];
    for (const table of match[1] ? [match[1]] : tablesOf(select)) add(match.index, table, { skipsLocked, ordered });
  }
  // A row that a statement locks by a select first is not locked by its update.
  const first = new Map<string, Locks & { at: number }>();
  for (const one of found.sort(
    (a, b) => Number(b.ordered || b.skipsLocked) - Number(a.ordered || a.skipsLocked) || a.at - b.at,
  ))
    if (!first.has(one.table)) first.set(one.table, one);
  return [...first.values()].sort((a, b) => a.at - b.at);
}
const CTE_NAME = (sql: string, name: string) =>
  new RegExp(`\\b${name}(\\s*\\([^)]*\\))?\\s+as\\s+(not )?(materialized )?\\(`).test(sql);

/** The text of the select whose lock clause is at that place. */
function selectBefore(sql: string, end: number): string {
  let depth = 0;
  for (let at = end - 1; at >= 0; at--) {
    if (sql[at] === ')') depth++;
    if (sql[at] === '(' && depth-- === 0) return sql.slice(at + 1, end);
  }
  return sql.slice(0, end);
}
const tablesOf = (select: string): string[] =>
  [...select.matchAll(/\b(?:from|join)\s+"?(\w+)"?/g)].map((match) => match[1]!).filter((table) => RANK.has(table));

/** The transaction of one connection. */
class Trace {
  held: Held[] = [];
  savepoints: Savepoints = [];
  /** Whether it ever had a savepoint. */
  hasSavepoints = false;

  /** Follows savepoints: a rollback releases locks. */
  mark(sql: string): void {
    const [, verb, name = ''] = /^\s*(savepoint|rollback to savepoint|release savepoint)\s+(\w+)/i.exec(sql) ?? [];
    if (!verb) return;
    this.hasSavepoints = true;
    if (/^savepoint/i.test(verb)) this.savepoints.push([name, this.held.length]);
    while (!/^savepoint/i.test(verb) && this.savepoints.length) {
      const [last, count] = this.savepoints.pop()!;
      if (/^rollback/i.test(verb)) this.held.length = count;
      if (last === name) break;
    }
  }

  /** Remembers rows that the transaction has inserted. */
  inserted(table: string, keys: string[], sql: string): void {
    this.held.push(...this.#unknown(table, keys).map((key) => ({ table, key, sql, isNew: true })));
  }

  /** Adds the locked rows of a table and reports those that come too late. */
  locked({ table, skipsLocked, ordered, isOwnTask }: Locks, keys: string[], sql: string): void {
    const fresh = this.#unknown(table, keys);
    if (!skipsLocked && fresh.length) {
      if (fresh.length > 1 && !ordered) report(`${table}: ${fresh.length} rows in no order`, sql);
      const first = fresh.reduce((a, b) => (a < b ? a : b));
      const isLater = (one: Held) =>
        RANK.get(one.table)! > RANK.get(table)! || (one.table === table && one.key > first && !isOwnTask);
      const later = this.held.find((one) => !one.isNew && isLater(one));
      if (later) report(`${table} after ${later.table}`, sql, later.sql);
    }
    this.held.push(...fresh.map((key) => ({ table, key, sql, isNew: false })));
  }

  /** Rows that the lock of an account protects need that lock. */
  lockedUnderAccount(table: string, sql: string): void {
    if (!this.held.some((one) => one.table === 'balance')) report(`${table} without the lock of its account`, sql);
  }

  #unknown(table: string, keys: string[]): string[] {
    const known = new Set(this.held.filter((one) => one.table === table).map(({ key }) => key));
    return keys.filter((key) => !known.has(key));
  }
}

const ROOT = join(import.meta.dirname, '../..');
const oneLine = (sql: string) => sql.replace(/\s+/g, ' ').trim().slice(0, 160);
function report(fault: string, sql: string, before?: string): void {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 50;
  const places = new Error()
    .stack!.split('\n')
    .flatMap((line) =>
      line.includes(`${ROOT}/`) && !line.includes('/node_modules/') ? line.split(`${ROOT}/`)[1]! : [],
    )
    .filter((place) => !place.startsWith('test/setup/lock-order.ts'));
  Error.stackTraceLimit = limit;
  const ours = places.filter((place) => !/^entities\/database\/[\w-]+\.ts/.test(place));
  // A test did that directly, or a migration, which runs alone.
  if (ours[0]?.startsWith('test/') || places.some((place) => place.startsWith('entities/database/migrations/'))) return;
  recorder.tell(
    `${fault}: ${oneLine(sql)}${before ? ` AFTER ${oneLine(before)}` : ''} (${ours.slice(0, 3).join(' < ')})`,
  );
}

/** The ids of the transaction. A savepoint has its own one, which only the much slower view of all locks tells. */
const OWN_IDS = 'array[pg_current_xact_id_if_assigned()::xid]';
const IDS_WITH_SAVEPOINTS = `array(
  select transactionid from pg_locks where pid = pg_backend_pid() and locktype = 'transactionid')`;
/** The rows of tables that the transaction has locked. Prepared, because PostgreSQL takes longer to plan than to run it. */
function lockedRows(tables: string[], hasSavepoints: boolean) {
  const key = `${tables} ${hasSavepoints}`;
  const name = names.get(key) ?? `locked rows ${names.size}`;
  names.set(key, name);
  const selects = tables.map(
    (table) => `
    select '${table}' as table, (${KEY.get(table)})::text as key, xmax = 0 as "isFresh" from ${table}
      where xmax = any((select ids from own)::xid[]) or xmin = any((select ids from own)::xid[])`,
  );
  const own = `with own as materialized (select ${hasSavepoints ? IDS_WITH_SAVEPOINTS : OWN_IDS} as ids)`;
  return { name, text: own + selects.join(' union all ') };
}
const names = new Map<string, string>();
/** A session behind a pooler keeps no names. */
const nameless = (client: object, query: { name: string; text: string }) =>
  'isPooled' in client ? { text: query.text } : query;

function listen(): void {
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const { query } = prototype;
  const traces = new WeakMap<object, Trace>();
  prototype.query = function (this: object, ...given) {
    const [first] = given as [string | { text?: string }];
    const sql = typeof first === 'string' ? first : first?.text;
    const answer = query.apply(this, given);
    if (typeof sql !== 'string') return answer;
    if (/^\s*(begin|start transaction)/i.test(sql)) traces.set(this, new Trace());
    else if (/^\s*(commit|rollback(?! to))/i.test(sql)) traces.delete(this);
    const trace = traces.get(this);
    if (!trace || !(answer instanceof Promise)) return answer;
    trace.mark(sql);
    const locks = locksOf(sql);
    const inserted = [...sql.matchAll(/insert\s+into\s+"?(\w+)"?/gi)]
      .map((match) => match[1]!.toLowerCase())
      .filter((table) => RANK.has(table) && !locks.some((one) => one.table === table));
    if (!locks.length && !inserted.length) return answer;
    return answer.then(async (result) => {
      const asked = [...new Set([...inserted, ...locks.map(({ table }) => table)])].filter(
        (table) => RANK.has(table) && !UNDER_ACCOUNT.has(table),
      );
      try {
        const { rows: found } = asked.length
          ? ((await query.call(this, nameless(this, lockedRows(asked, trace.hasSavepoints)))) as { rows: LockedRow[] })
          : { rows: [] };
        const rows = (table: string, isNew = false) =>
          found.filter((row) => row.table === table && (!isNew || row.isFresh)).map(({ key }) => key);
        for (const table of inserted) trace.inserted(table, rows(table), sql);
        for (const one of locks)
          if (UNDER_ACCOUNT.has(one.table)) {
            if ((result as pg.QueryResult).rowCount) trace.lockedUnderAccount(one.table, sql);
          } else if (RANK.has(one.table)) {
            if (one.upserts) trace.inserted(one.table, rows(one.table, true), sql);
            trace.locked(one, rows(one.table), sql);
          } else report(`${one.table} has no place in the order`, sql);
      } catch {
        // The connection is gone, and the transaction with it.
      }
      return result;
    });
  };
}

if (isFirst) listen();
