/** A page with a list: its filters, its rows, and the details of one row. It draws only the rows that fit the window. */
import { effect, signal } from '@preact/signals';
import { html } from 'htm/preact';
import { changes, graphql, may, Refusal, type Row } from './api.ts';
import { Parts } from './details.ts';
import { openForm } from './form.ts';
import { Guard } from './guard.ts';
import { inWords, isRequired, memberOf, rootField, type TypeRef, valuesOf, written } from './model.ts';
import { paced } from './pace.ts';
import { type Action, type Column, nameOf, type Page } from './pages/page.ts';
import { go, place } from './place.ts';
import { ago, brief, readValue, shown, toneOf } from './values.ts';

/** The height of a row in the style sheet, in pixels. */
const ROW_PX = 40;
/** Rows beyond the window that are drawn already. */
const SPARE = 10;

interface Listed {
  rows: Row[];
  cursor: string | null;
  /** The number of requests that read the rows. */
  parts: number;
  problem?: string;
}
/** The rest between two readings of a long list while changes pour in, in milliseconds. */
const LONG_REST_MS = 5_000;
const listed = signal<Listed | undefined>(undefined);
const scrolled = signal(0);
/** The page with its filters that the rows belong to, and the change of the service that they show. */
let [shownPage, shownChange] = ['', -1];

/** Reads the rows of the page anew, as many as it has shown, or one part more. Keeps what it shows until they arrive. */
async function read(page: Page, more = false): Promise<void> {
  // An effect calls this, and must not follow what it writes itself.
  const before = listed.peek();
  const wanted = shownPage;
  try {
    let { rows, cursor } = await rowsOf(page, more ? before?.cursor : undefined);
    let parts = 1;
    if (more) {
      rows = [...before!.rows, ...rows];
      parts += before!.parts;
    }
    while (cursor && rows.length < (before?.rows.length ?? 0)) {
      const next = await rowsOf(page, cursor);
      rows = [...rows, ...next.rows];
      cursor = next.cursor;
      parts++;
    }
    if (shownPage === wanted) listed.value = { rows, cursor, parts };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    if (shownPage === wanted) listed.value = { rows: before?.rows ?? [], cursor: null, parts: 1, problem };
  }
}

/** @throws Refusal */
async function rowsOf(page: Page, cursor?: string | null): Promise<{ rows: Row[]; cursor: string | null }> {
  const field = rootField(page.list);
  const lacks = field.args.some(
    ({ name, type, defaultValue }) => isRequired(type) && defaultValue === null && !place.value.search.get(name),
  );
  if (lacks) return { rows: [], cursor: null };
  const given = { ...filtersOf(page), ...(cursor && { cursor }) };
  const used = field.args.filter(({ name }) => name in given);
  const variables = used.map(({ name, type }) => `$${name}: ${written(type)}`).join(', ');
  const args = used.map(({ name }) => `${name}: $${name}`).join(', ');
  const isPage = isPaged(field.type);
  const selection = isPage ? `data { ${page.fields} } nextCursor` : page.fields;
  const query = `query${variables && `(${variables})`} { ${page.list}${args && `(${args})`} { ${selection} } }`;
  const answer = (await graphql(query, given))[page.list];
  if (!isPage) return { rows: answer as Row[], cursor: null };
  const { data, nextCursor } = answer as { data: Row[]; nextCursor: string | null };
  return { rows: data, cursor: nextCursor };
}

const isPaged = (type: TypeRef): boolean => /Page!?$/.test(written(type));

/** The values of the filters in the address. @throws Refusal if one has no such value */
function filtersOf(page: Page): Row {
  const entries = (page.filters ?? []).map((name): [string, unknown] => {
    const argument = rootField(page.list).args.find((one) => one.name === name)!;
    const text = place.value.search.get(name) ?? '';
    if (!text) return [name, undefined];
    try {
      return [name, readValue(argument, text)];
    } catch (error) {
      throw new Refusal((error as Error).message, 'filter');
    }
  });
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Reads the page that the address names, whenever the address or the service changes. */
export function followPage(pages: readonly Page[]): () => void {
  const named = () => pages.find(({ path }) => path === place.peek().path);
  const again = paced(
    async () => {
      const page = named();
      if (page) await read(page);
    },
    () => ((listed.peek()?.parts ?? 1) > 1 ? LONG_REST_MS : 0),
  );
  return effect(() => {
    const change = changes.value;
    const { path, search } = place.value;
    const whole = `${path}?${withoutRow(search)}`;
    // To open a row needs no request.
    if (shownPage === whole && shownChange === change) return;
    const isSame = shownPage === whole;
    [shownPage, shownChange] = [whole, change];
    if (isSame) return again();
    listed.value = undefined;
    scrolled.value = 0;
    const page = named();
    if (page) void read(page);
  });
}

const withoutRow = (search: URLSearchParams): string => {
  const rest = new URLSearchParams(search);
  rest.delete('row');
  return String(rest);
};

export function ListPage({ page }: { page: Page }) {
  const { rows, cursor, problem } = listed.value ?? { rows: [], cursor: null, problem: undefined };
  const chosen = rows.find((row) => nameOf(page, row) === place.value.search.get('row'));
  return html`
    <header class="head">
      <h1>${page.title}</h1>
      <${Buttons} actions=${page.actions ?? []} done=${() => read(page)} />
    </header>
    ${page.filters && html`<${Filters} page=${page} />`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <div class=${chosen ? 'split' : ''}>
      <${Rows} page=${page} rows=${rows} isRead=${listed.value !== undefined} chosen=${chosen} />
      ${chosen && html`<${Details} page=${page} row=${chosen} />`}
    </div>
    ${cursor && html`<button class="more" onClick=${() => read(page, true)}>Show more</button>`}`;
}

function Rows({ page, rows, isRead, chosen }: { page: Page; rows: Row[]; isRead: boolean; chosen?: Row }) {
  if (!rows.length) return html`<p class="empty">${isRead ? page.empty : 'Reading …'}</p>`;
  const first = Math.max(0, Math.floor(scrolled.value / ROW_PX) - SPARE);
  const last = first + Math.ceil(innerHeight / ROW_PX) + 2 * SPARE;
  return html`
    <div class="grid" role="grid" aria-label=${page.title} aria-rowcount=${rows.length + 1}>
      <div class="row titles" role="row" aria-rowindex="1">
        ${page.columns.map((column) => html`<div role="columnheader" class=${classOf(column)}>${column.title}</div>`)}
      </div>
      <div class="rows" role="rowgroup" onScroll=${(event: Event) => noteScroll(event)}>
        <svg class="spacer" width="1" height=${first * ROW_PX} aria-hidden="true"></svg>
        ${rows
          .slice(first, last)
          .map(
            (row, i) =>
              html`<${Line} page=${page} row=${row} index=${first + i} isChosen=${row === chosen} key=${nameOf(page, row)} />`,
          )}
        <svg class="spacer" width="1" height=${Math.max(0, rows.length - last) * ROW_PX} aria-hidden="true"></svg>
      </div>
    </div>`;
}
const noteScroll = (event: Event) => {
  scrolled.value = (event.target as Element).scrollTop;
};

function Line({ page, row, index, isChosen }: { page: Page; row: Row; index: number; isChosen: boolean }) {
  const name = nameOf(page, row);
  const open = () => go(page.path, { ...Object.fromEntries(place.value.search), row: isChosen ? '' : name });
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' || event.key === ' ') open();
    else if (event.key === 'ArrowDown') focusBeside(event, 'nextElementSibling');
    else if (event.key === 'ArrowUp') focusBeside(event, 'previousElementSibling');
    else return;
    event.preventDefault();
  };
  return html`<div class="row" role="row" tabindex="0" aria-rowindex=${index + 2} aria-selected=${isChosen}
    onClick=${open} onKeyDown=${onKeyDown}>
    ${page.columns.map((column) => html`<div role="gridcell" class=${classOf(column)}><${Guard}><${Cell} column=${column} row=${row} type=${typeIn(page, column.field)} /><//></div>`)}
  </div>`;
}
const focusBeside = (event: KeyboardEvent, side: 'nextElementSibling' | 'previousElementSibling') =>
  ((event.currentTarget as Element)[side] as HTMLElement | null)?.focus();

const classOf = ({ as, wide }: Column): string => `cell ${as ?? ''} ${wide ? 'wide' : ''}`;

/** The type of a field of the rows. */
function typeIn({ list }: Page, field: string): TypeRef | undefined {
  const { type } = rootField(list);
  return memberOf(isPaged(type) ? memberOf(type, 'data') : type, field);
}

function Cell({ column: { field, as }, row, type }: { column: Column; row: Row; type: TypeRef | undefined }) {
  const value = row[field];
  if (as === 'state') return html`<${State} value=${String(value)} />`;
  if (as === 'age' && typeof value === 'string')
    return html`<time datetime=${value} title=${shown(field, value, type)}>${ago(value)}</time>`;
  const text = shown(field, value, type);
  const part = as === 'thing' ? brief(field, value, type) : as === 'day' ? text.slice(0, 10) : text;
  return html`<span title=${text}>${part}</span>`;
}
const State = ({ value }: { value: string }) =>
  html`<span class="state ${toneOf(value)}">${value.toLowerCase().replaceAll('_', ' ')}</span>`;

function Details({ page, row }: { page: Page; row: Row }) {
  const fitting = (page.rowActions ?? []).filter(({ when }) => !when || when(row));
  const name = nameOf(page, row);
  const close = () => go(page.path, { ...Object.fromEntries(place.value.search), row: '' });
  return html`<aside class="details" aria-label="Details">
    <header><h2>${name}</h2><button class="quiet" aria-label="Close the details" onClick=${close}>✕</button></header>
    <${Buttons} actions=${fitting} row=${row} name=${name} done=${() => read(page)} />
    <dl>${Object.keys(row).map(
      (field) =>
        html`<div><dt>${inWords(field)}</dt><dd><${Guard}><${Cell} column=${{ field }} row=${row} type=${typeIn(page, field)} /><//></dd></div>`,
    )}</dl>
    ${page.details && html`<${Parts} id=${name} field=${page.details.field} />`}
  </aside>`;
}

interface ButtonsProps {
  actions: Action[];
  row?: Row;
  name?: string;
  done: () => unknown;
}
function Buttons({ actions, row, name, done }: ButtonsProps) {
  const allowed = actions.filter(({ mutation }) => may(mutation));
  return html`<div class="buttons">${allowed.map(
    (
      action,
    ) => html`<button class=${action.destroys ? 'danger' : ''} onClick=${() => openForm({ action, row, name, done })}>
      ${action.label}
    </button>`,
  )}</div>`;
}

function Filters({ page }: { page: Page }) {
  const set = (name: string) => (event: Event) =>
    go(page.path, {
      ...Object.fromEntries(place.value.search),
      row: '',
      [name]: (event.target as HTMLInputElement).value,
    });
  const args = page.filters!.map((filter) => rootField(page.list).args.find(({ name }) => name === filter)!);
  return html`<div class="filters">${args.map(({ name, type, description, defaultValue }) => {
    const [values, value] = [valuesOf(type), place.value.search.get(name) ?? ''];
    return html`<label title=${description}>${inWords(name)}
      ${
        values
          ? html`<select value=${value} onChange=${set(name)}>
              <option value="">all</option>${values.map((one) => html`<option value=${one}>${one.toLowerCase()}</option>`)}
            </select>`
          : html`<input value=${value} placeholder=${isRequired(type) ? (defaultValue ?? '') : 'any'} onChange=${set(name)} />`
      }
    </label>`;
  })}</div>`;
}
