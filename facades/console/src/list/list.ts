/** A page with a list: its filters, its rows, and the details of one row. It draws only the rows that fit the window. */
import { html } from 'htm/preact';
import { may, type Row } from '../api.ts';
import { Guard } from '../guard.ts';
import { nameOf, type Page } from '../pages/page.ts';
import { go, place } from '../place.ts';
import { Cell, classOf, typeIn } from './cell.ts';
import { Buttons, Details, openRowOf } from './details.ts';
import { download } from './download.ts';
import { Filters } from './filters.ts';
import { Plot } from './plot.ts';
import { listed, readAll, readMore, shownRows } from './rows.ts';

/** The height of a row in the style sheet, in pixels. */
const ROW_PX = 40;
/** Rows beyond the window that are drawn already. */
const SPARE = 10;
/** The window moves over the rows by this many. */
const STEP = 5;

export function ListPage({ page }: { page: Page }) {
  const { rows, next, problem } = listed.value ?? { rows: [], next: null, problem: undefined };
  const chosen = openRowOf(page);
  const forms = (page.actions ?? []).filter(({ mutation }) => may(mutation));
  // After a fault, the console does not know whether there are rows.
  const words = listed.value ? !problem && withCode(page.empty) : 'Reading …';
  return html`
    <header class="head">
      <h1>${page.title}</h1>
      <${Buttons} forms=${forms.map((action) => ({ action, done: () => readAll(page) }))}>
        ${rows.length > 0 && html`<button class="quiet" onClick=${() => download(page.path, rows)}>Download CSV</button>`}
      <//>
    </header>
    ${page.filters && html`<${Filters} page=${page} />`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${page.plot && html`<${Plot} plot=${page.plot} rows=${rows} />`}
    <div class=${chosen ? 'split' : ''}>
      <${Rows} page=${page} rows=${rows} chosen=${chosen} words=${words} />
      ${chosen && html`<${Details} page=${page} row=${chosen} />`}
    </div>
    ${next && html`<button class="more" onClick=${() => readMore(page)}>Show more</button>`}`;
}

interface RowsProps {
  page: Page;
  rows: Row[];
  chosen?: Row;
  /** The words in the place of no rows. */
  words: unknown;
}
function Rows({ page, rows, chosen, words }: RowsProps) {
  if (!rows.length) return html`<p class="empty">${words}</p>`;
  const [first, last] = shownRows.value;
  return html`
    <div class="grid" role="grid" aria-label=${page.title} aria-rowcount=${rows.length + 1}>
      <div class="row titles" role="row" aria-rowindex="1">
        ${page.columns.map((column) => html`<div role="columnheader" class=${classOf(page, column)}>${column.title}</div>`)}
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
/** Shows the parts between backticks as code. */
const withCode = (text: string) => text.split('`').map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));

/** Draws the rows around the window. A step of several rows saves most renders while the operator scrolls. */
function noteScroll({ target }: Event): void {
  const first = Math.max(0, Math.floor((target as Element).scrollTop / ROW_PX / STEP) * STEP - SPARE);
  if (first !== shownRows.peek()[0])
    shownRows.value = [first, first + Math.ceil(innerHeight / ROW_PX) + 2 * SPARE + STEP];
}

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
    ${page.columns.map((column) => html`<div role="gridcell" class=${classOf(page, column)}><${Guard}><${Cell} column=${column} row=${row} type=${typeIn(page, column.field)} words=${page.words?.[column.field]?.values} /><//></div>`)}
  </div>`;
}
const focusBeside = (event: KeyboardEvent, side: 'nextElementSibling' | 'previousElementSibling') =>
  ((event.currentTarget as Element)[side] as HTMLElement | null)?.focus();
