/** Reads PostgreSQL's log for transactions that collided. */

const PREFIX = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \S+ \[(\d+)\] /;
/** The length of a printed statement. Its beginning identifies it. */
const STATEMENT_CHARACTERS = 200;

export interface Collisions {
  deadlocks: string[];
  serialization: string[];
  /** Transactions that waited for a lock for longer than a second. */
  lockWaits: string[];
}

/** Lists each kind of collision once, with its count, the most frequent first. */
export function collisionsIn(log: string): Collisions {
  const entries = entriesOf(log);
  const having = (pattern: RegExp) => counted(entries.filter((entry) => pattern.test(entry)).map(kindOf));
  return {
    deadlocks: having(/ERROR: {2}deadlock detected/),
    serialization: having(/ERROR: {2}could not serialize/),
    lockWaits: having(/still waiting for/),
  };
}

const counted = (kinds: string[]): string[] =>
  [...Map.groupBy(kinds, (kind) => kind)]
    .toSorted((a, b) => b[1].length - a[1].length)
    .map(([kind, those]) => `${those.length} times: ${kind}`);

/** Joins each line with the DETAIL, CONTEXT and STATEMENT lines of the same process. */
function entriesOf(log: string): string[] {
  const entries: string[] = [];
  const latest = new Map<string, number>();
  let current = -1;
  for (const line of log.split('\n')) {
    const process = PREFIX.exec(line)?.[1];
    if (process && /\] (DETAIL|CONTEXT|STATEMENT|HINT): /.test(line)) current = latest.get(process) ?? -1;
    else if (process) {
      current = entries.push('') - 1;
      latest.set(process, current);
    }
    if (current >= 0) entries[current] += `${line}\n`;
  }
  return entries;
}

/** Removes the parts that differ each time: processes become A, B, and so on, and other numbers go. */
function kindOf(entry: string): string {
  const processes: string[] = [];
  const letterOf = (process: string) => {
    if (!processes.includes(process)) processes.push(process);
    return String.fromCharCode(65 + processes.indexOf(process));
  };
  return entry
    .split(/\n(?=\d{4}-\d\d-\d\d |\tProcess \d+)/)
    .map((part) => part.replace(PREFIX, '').replace(/\s+/g, ' ').trim())
    .filter(
      (part) =>
        !/^(HINT|CONTEXT|DETAIL: Process holding)/.test(part) &&
        !(part.startsWith('STATEMENT') && /deadlock/.test(entry)),
    )
    .map((part) => part.replace(/^(DETAIL: )?ERROR: /, ''))
    .map((part) => part.replace(/([Pp]rocess) (\d+)/g, (_, word, process) => `${word} ${letterOf(process)}`))
    .map((part) => part.replace(/(transaction) \d+| after [\d.]+ ms|(tuple) \(\d+,\d+\)/g, '$1$2'))
    .map((part) => part.slice(0, STATEMENT_CHARACTERS))
    .join('\n            ');
}
