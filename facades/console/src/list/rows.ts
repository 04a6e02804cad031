/** The rows of the open page. After a change it reads the parts again that the window shows, and the beginning for new rows. */
import { effect, signal } from '@preact/signals';
import { changes, graphql, type Row } from '../api.ts';
import { inWords, isRequired, rootField, type TypeRef, written } from '../model.ts';
import { paced } from '../pace.ts';
import { filterIn, nameOf, type Page } from '../pages/page.ts';
import { place } from '../place.ts';
import { Refusal } from '../refusal.ts';
import { readValue } from '../values.ts';

/** Rows that one cursor begins. The service returns 50 of them in one answer. */
interface Part {
  cursor: string | null;
  rows: Row[];
  /** The change of the service that the rows show. */
  change: number;
}
interface Listed {
  parts: Part[];
  rows: Row[];
  /** The cursor of the rows that the page has not read. Null: it has all. */
  next: string | null;
  problem?: string;
}
/** The rows of the open page. Undefined: they have not arrived yet. */
export const listed = signal<Listed | undefined>(undefined);
/** The index of the first and of the last row in the window. */
export const shownRows = signal<readonly [number, number]>([0, 50]);

/** The rest between two readings while changes pour in: at least, in times of the reading itself, and at most. In milliseconds. */
const [REST_MS, REST_TIMES, REST_MS_MAX] = [1_000, 10, 10_000];
/** A first part that has grown beyond this is read as several parts again. */
const ROWS_MAX = 200;
/** The page with its filters that the rows belong to, and the change of the service that they show. */
let [shownPage, shownChange] = ['', 0];

/** Joins the parts. A row that moved to another part meanwhile appears once. */
function joined(page: Page, parts: Part[], next: string | null): Listed {
  if (parts.length === 1) return { parts, rows: parts[0]!.rows, next };
  const rows = new Map<string, Row>();
  for (const row of parts.flatMap((part) => part.rows)) {
    const name = nameOf(page, row);
    if (!rows.has(name)) rows.set(name, row);
  }
  return { parts, rows: [...rows.values()], next };
}

/** Counts the pages that the operator has opened. A page ignores the answers for the page before it. */
let visit = 0;
/** The last reading of this visit. Readings follow each other, so that an older answer replaces no newer one. */
let lastReading: Promise<void> = Promise.resolve();

/** Does the reading after those before it. The page shows its rows until the new ones arrive, and the words of a refusal above. */
function keeping(reading: () => Promise<Listed>): Promise<void> {
  const own = visit;
  lastReading = lastReading.then(() => (visit === own ? kept(reading, own) : undefined));
  return lastReading;
}

async function kept(reading: () => Promise<Listed>, own: number): Promise<void> {
  const before = listed.peek();
  let found: Listed;
  try {
    found = await reading();
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    found = { ...(before ?? { parts: [], rows: [], next: null }), problem };
  }
  if (visit === own) listed.value = found;
}

/** Reads all rows anew, as many as the page has shown. */
export const readAll = (page: Page): Promise<void> => keeping(() => allRows(page));

async function allRows(page: Page): Promise<Listed> {
  const count = listed.peek()?.rows.length ?? 0;
  const parts: Part[] = [];
  let next: string | null = null;
  do {
    const { next: following, ...answer }: Answer = await answerOf(page, next);
    parts.push({ cursor: next, ...answer });
    next = following;
  } while (next && parts.flatMap(({ rows }) => rows).length < count);
  return joined(page, parts, next);
}

/** Reads one part more. */
export const readMore = (page: Page): Promise<void> =>
  keeping(async () => {
    const { parts, next: cursor } = listed.peek()!;
    const { next, ...answer } = await answerOf(page, cursor);
    return joined(page, [...parts, { cursor, ...answer }], next);
  });

/** Reads the first part again, and those that the window shows. */
const readShown = (page: Page): Promise<void> =>
  keeping(async () => {
    const before = listed.peek();
    if (!before || before.problem || before.parts.length < 2 || before.parts[0]!.rows.length > ROWS_MAX)
      return allRows(page);
    const inWindow = new Set(partsInWindow());
    const parts: Part[] = [];
    for (const [index, part] of before.parts.entries())
      parts.push(!index || inWindow.has(part) ? await readAgain(page, part) : part);
    return joined(page, parts, before.next);
  });

/** The parts that the window shows. */
function partsInWindow(): Part[] {
  const [first, last] = shownRows.value;
  let end = 0;
  return (listed.peek()?.parts ?? []).filter(({ rows }) => {
    const begin = end;
    end += rows.length;
    return begin <= last && end > first;
  });
}

/** Reads a part from its cursor on. New rows push the last ones out of the answer, and these stay. */
async function readAgain(page: Page, { cursor, rows: before }: Part): Promise<Part> {
  const rows: Row[] = [];
  const change = changes.peek();
  let next = cursor;
  do {
    const answer = await answerOf(page, next);
    rows.push(...answer.rows);
    next = answer.next;
  } while (next && rows.length < before.length);
  const names = new Set(rows.map((row) => nameOf(page, row)));
  const known = before.findLastIndex((row) => names.has(nameOf(page, row)));
  return { cursor, rows: next ? [...rows, ...before.slice(known + 1)] : rows, change };
}

interface Answer {
  rows: Row[];
  change: number;
  next: string | null;
}
/** @throws Refusal */
async function answerOf(page: Page, cursor: string | null): Promise<Answer> {
  const change = changes.peek();
  const field = rootField(page.list);
  const lacks = field.args.some(
    ({ name, type, defaultValue }) => isRequired(type) && defaultValue === null && !place.value.search.get(name),
  );
  if (lacks) return { rows: [], change, next: null };
  const given = { ...filtersOf(page), ...(cursor && { cursor }) };
  const used = field.args.filter(({ name }) => name in given);
  const variables = used.map(({ name, type }) => `$${name}: ${written(type)}`).join(', ');
  const args = used.map(({ name }) => `${name}: $${name}`).join(', ');
  const isPage = isPaged(field.type);
  const selection = isPage ? `data { ${page.fields} } nextCursor` : page.fields;
  const query = `query${variables && `(${variables})`} { ${page.list}${args && `(${args})`} { ${selection} } }`;
  const answer = (await graphql(query, given))[page.list];
  // A page of one thing is a list of one row.
  if (!isPage) return { rows: [answer].flat() as Row[], change, next: null };
  const { data, nextCursor } = answer as { data: Row[]; nextCursor: string | null };
  return { rows: data, change, next: nextCursor };
}

/** Whether the rows come in pages. */
export const isPaged = (type: TypeRef): boolean => /Page!?$/.test(written(type));

/** The values of the filters in the address. @throws Refusal if one has no such value */
function filtersOf(page: Page): Row {
  const entries = (page.filters ?? []).map((name): [string, unknown] => {
    const argument = rootField(page.list).args.find((one) => one.name === name)!;
    const text = filterIn(page, name, place.value.search);
    if (!text) return [name, undefined];
    try {
      return [name, readValue(argument, text)];
    } catch (error) {
      throw new Refusal('', 'filter', [{ field: inWords(name), message: (error as Error).message }]);
    }
  });
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Reads the page that the address names, whenever the address or the service changes. */
export function followPage(pages: readonly Page[]): () => void {
  const named = () => pages.find(({ path }) => path === place.peek().path);
  let restMs = REST_MS;
  const again = paced(
    async () => {
      const began = performance.now();
      const page = named();
      if (page) await readShown(page);
      restMs = Math.min(REST_MS_MAX, Math.max(REST_MS, REST_TIMES * (performance.now() - began)));
    },
    () => restMs,
  );
  const readScrolled = effect(() => {
    if (partsInWindow().some(({ change }) => change < shownChange)) again();
  });
  const readChanged = effect(() => {
    const change = changes.value;
    const { path, search } = place.value;
    const whole = `${path}?${withoutRow(search)}`;
    // To open a row needs no request.
    if (shownPage === whole && shownChange === change) return;
    const isSame = shownPage === whole;
    [shownPage, shownChange] = [whole, change];
    if (isSame) return again();
    visit++;
    lastReading = Promise.resolve();
    listed.value = undefined;
    shownRows.value = [0, 50];
    const page = named();
    if (page) void readAll(page);
  });
  return () => {
    readScrolled();
    readChanged();
  };
}

const withoutRow = (search: URLSearchParams): string => {
  const rest = new URLSearchParams(search);
  rest.delete('row');
  return String(rest);
};
