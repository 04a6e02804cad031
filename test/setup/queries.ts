/** Listens to what this process sends to its databases. Nothing is changed by it. */
import pg from 'pg';

export interface Query {
  text: string;
  values: unknown[];
}

/** All queries while the work is done, in the order in which they are sent. */
export async function queriesOf(work: () => Promise<unknown>): Promise<Query[]> {
  const prototype = pg.Client.prototype as { query: (...given: unknown[]) => unknown };
  const query = prototype.query;
  const found: Query[] = [];
  prototype.query = function (this: unknown, ...given) {
    const [first, second] = given as [string | { text: string; values?: unknown[] }, unknown];
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

/** The codes of the errors that PostgreSQL answers this process with while the work is done (such as 40P01: deadlock). */
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
