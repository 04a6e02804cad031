/**
 * The names under which PostgreSQL keeps statements: each connection parses and plans them once. To plan a read of one server
 * costs more than to execute it.
 */

/** PostgreSQL keeps a statement from so many runs in a minute on. It takes some 70 KB in each connection. */
const RUNS_MIN = 60;
const MINUTE_MS = 60_000;

interface Kept {
  /** It means the same statement in each connection of the process. */
  name: string;
  /** The runs in the minute since this time, by performance.now(). It counts no further than the least number. */
  runs: number;
  since: number;
}
const KEPT = new Map<string, Kept>();

/** Lets each connection keep the statement once it runs often. */
export function keepPrepared(sql: string): void {
  if (!KEPT.has(sql)) KEPT.set(sql, { name: `s${KEPT.size}`, runs: 0, since: 0 });
}

/** Counts a run of a statement. @returns the name of a kept one. TypeORM's have none: partial indexes need their values */
export function preparedName(sql: string): string | undefined {
  const kept = KEPT.get(sql);
  if (!kept || kept.runs >= RUNS_MIN) return kept?.name;
  const now = performance.now();
  if (now - kept.since > MINUTE_MS) Object.assign(kept, { runs: 0, since: now });
  kept.runs++;
  return undefined;
}

/** Returns the statements that connections may keep. */
export const keptStatements = (): string[] => [...KEPT.keys()];
