/** The details of an open row, with its buttons, and with the parts that its list does not have. */
import { effect, signal } from '@preact/signals';
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { changes, graphql, may, type Row } from '../api.ts';
import { openForm } from '../form/form.ts';
import type { Opened } from '../form/sending.ts';
import { Guard } from '../guard.ts';
import { inWords, memberOf, rootField, titleOf } from '../model.ts';
import { paced } from '../pace.ts';
import { nameOf, type Page } from '../pages/page.ts';
import { go, place } from '../place.ts';
import { shown } from '../values.ts';
import { Cell, typeIn } from './cell.ts';
import { linkTo, withLinks } from './links.ts';
import { listed, readAll } from './rows.ts';

/** The parts, with the id of their row. */
const read = signal<{ id: string; parts: Row } | undefined>(undefined);
/** An open row that its list has not read, such as the old server of a link. */
export const single = signal<{ page: Page; row: Row } | undefined>(undefined);

/** The rest between two readings while changes pour in, in milliseconds. The service notes each look at a customer. */
const REST_MS = 5_000;
/** The page with its open row that the parts belong to. */
let openRow = '';

/** Reads the parts of the open row, whenever another row opens or the service changes. */
export function followRow(pages: readonly Page[]): () => void {
  const readOpen = async () => {
    const page = pages.find(({ path }) => path === place.peek().path);
    if (page) await readRow(page);
  };
  const again = paced(readOpen, () => REST_MS);
  return effect(() => {
    const { path, search } = place.value;
    const isNew = openRow !== `${path} ${search.get('row')} ${listed.value === undefined}`;
    openRow = `${path} ${search.get('row')} ${listed.value === undefined}`;
    // The row of the list stays after a fault, and the next change asks again.
    if (isNew) void readOpen().catch(() => {});
    else if (changes.value) again();
  });
}

/** Reads the parts of the open row, and the row itself if its list has not read it. @throws Refusal */
async function readRow(page: Page): Promise<void> {
  const id = place.peek().search.get('row');
  if (!id) return;
  const isOpen = () => place.peek().path === page.path && place.peek().search.get('row') === id;
  if (page.details) {
    const parts = await one(page.details.field, 'id', page.details.fields, id);
    if (isOpen()) read.value = { id, parts };
  }
  const isListed = listed.peek()?.rows.some((row) => nameOf(page, row) === id) ?? true;
  if (!page.one || isListed) return;
  const row = await one(page.one, page.key, page.fields, id);
  if (isOpen()) single.value = { page, row };
}

/** Reads one thing by its key. @throws Refusal */
async function one(field: string, key: string, fields: string, id: string): Promise<Row> {
  return (await graphql<Record<string, Row>>(`query ($id: ID!) { ${field}(${key}: $id) { ${fields} } }`, { id }))[
    field
  ]!;
}

/** Shows each part under its name: a list of things, or one thing. @param field the root field that gives the parts */
function Parts({ id, field }: { id: string; field: string }) {
  if (read.value?.id !== id) return null;
  const { type } = rootField(field);
  return html`${Object.entries(read.value.parts).map(
    ([name, part]) => html`<section><h3>${inWords(name)}</h3><ul>
      ${[part].flat().map((thing) => html`<li>${withLinks(shown(name, thing, memberOf(type, name)))}</li>`)}
    </ul></section>`,
  )}`;
}

/** Returns the open row of a page. */
export function openRowOf(page: Page): Row | undefined {
  const others = single.value?.page === page ? [single.value.row] : [];
  const name = place.value.search.get('row');
  return [...(listed.value?.rows ?? []), ...others].find((row) => nameOf(page, row) === name);
}
/** The words by which people know a row. */
const calledOf = (page: Page, row: Row): string => String((page.called && row[page.called]) || nameOf(page, row));

/** Returns the forms of the actions that fit a row, and that the role may send. */
export function formsOf(page: Page, row: Row): Opened[] {
  const [name, called] = [nameOf(page, row), calledOf(page, row)];
  const done = () => Promise.all([readAll(page), readRow(page).catch(() => {})]);
  return (page.rowActions ?? [])
    .filter(({ when, mutation }) => may(mutation) && (!when || when(row)))
    .map((action) => ({ action, row, name, called, done }));
}

export function Details({ page, row }: { page: Page; row: Row }) {
  const name = nameOf(page, row);
  const called = calledOf(page, row);
  const close = () => go(page.path, { ...Object.fromEntries(place.value.search), row: '' });
  return html`<aside class="details" aria-label="Details">
    <header><h2>${called}</h2><button class="quiet" aria-label="Close the details" onClick=${close}>✕</button></header>
    <${Buttons} forms=${formsOf(page, row)} />
    <dl>${Object.keys(row).map((field) => {
      const link = row[field] === name ? undefined : linkTo(field, row[field]);
      const cell = html`<${Guard}><${Cell} column=${{ field }} row=${row} type=${typeIn(page, field)} words=${page.words?.[field]?.values} /><//>`;
      return html`<div><dt>${page.words?.[field]?.title ?? titleOf(field)}</dt><dd>${link ? html`<a href=${link}>${cell}</a>` : cell}</dd></div>`;
    })}</dl>
    ${page.details && html`<${Parts} id=${name} field=${page.details.field} />`}
  </aside>`;
}

/** Buttons that open forms. */
export function Buttons({ forms, children }: { forms: Opened[]; children?: ComponentChildren }) {
  return html`<div class="buttons">${forms.map(
    (form) => html`<button class=${form.action.destroys ? 'danger' : ''} onClick=${() => openForm(form)}>
      ${form.action.label}
    </button>`,
  )}${children}</div>`;
}
