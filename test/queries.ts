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
