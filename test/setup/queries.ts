/** Records the queries of this process without changing them. */
import pg from 'pg';
import type { Database } from '../../entities/database/database.ts';

export interface Query {
  text: string;
  values: unknown[];
}

/** Returns all queries to the database during the work, in their order. Other test files of this process have other databases. */
export async function queriesOf({ source }: Pick<Database, 'source'>, work: () => Promise<unknown>): Promise<Query[]> {
  const name = new URL((source.options as { url: string }).url).pathname.slice(1);
  const prototype = pg.Client.prototype as { query: (...given: unknown[]) => unknown };
  const query = prototype.query;
  const found: Query[] = [];
  prototype.query = function (this: unknown, ...given) {
    const [first, second] = given as [string | { text: string; values?: unknown[] }, unknown];
    const { database } = this as pg.Client;
    if (database !== name) return query.apply(this, given);
    if (typeof first === 'string') found.push({ text: first, values: Array.isArray(second) ? second : [] });
    else found.push({ text: first.text, values: first.values ?? [] });
    return query.apply(this, given);
  };
  try {
    await work();
  } finally {
    prototype.query = query;
  }
  return found;
}

/** Returns the codes of PostgreSQL's errors during the work, such as 40P01 for a deadlock. */
export async function refusalsOf(work: () => Promise<unknown>): Promise<string[]> {
  const prototype = pg.Client.prototype as { query: (...given: unknown[]) => unknown };
  const query = prototype.query;
  const codes: string[] = [];
  const note = (error?: { code?: string } | null) => error?.code && codes.push(error.code);
  prototype.query = function (this: unknown, ...given) {
    const last = given.at(-1);
    if (typeof last === 'function')
      given[given.length - 1] = (error: { code?: string } | null, result: unknown) => {
        note(error);
        last(error, result);
      };
    const answer = query.apply(this, given);
    if (answer instanceof Promise) answer.catch(note);
    return answer;
  };
  try {
    await work();
  } finally {
    prototype.query = query;
  }
  return codes;
}
