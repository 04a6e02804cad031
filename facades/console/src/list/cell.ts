/** A value of a row, as a cell of a list and the details show it. */
import { html } from 'htm/preact';
import type { Row } from '../api.ts';
import { enumInWords, innermost, memberOf, rootField, type TypeRef, valuesOf } from '../model.ts';
import type { Column, Page } from '../pages/page.ts';
import { ago, brief, shown, toneOf } from '../values.ts';
import { isPaged } from './rows.ts';

/** The classes of a cell, and of its title. Values of few letters leave the width to names and numbers. */
export function classOf(page: Page, { field, as, wide }: Column): string {
  const type = typeIn(page, field);
  const isShort = !as && type && (innermost(type).name === 'Boolean' || valuesOf(type));
  return `cell ${as ?? ''} ${isShort ? 'short' : ''} ${wide ? 'wide' : ''}`;
}

/** The type of a field of the rows. */
export function typeIn({ list }: Page, field: string): TypeRef | undefined {
  const { type } = rootField(list);
  return memberOf(isPaged(type) ? memberOf(type, 'data') : type, field);
}

interface CellProps {
  column: Pick<Column, 'field' | 'as'>;
  row: Row;
  type: TypeRef | undefined;
  /** The words of the page for values of the field. */
  words?: Record<string, string> | undefined;
}
export function Cell({ column: { field, as }, row, type, words }: CellProps) {
  const value = row[field];
  const own = words?.[String(value)];
  if (as === 'state') return html`<${State} value=${String(value)} words=${own} />`;
  if (own) return html`<span>${own}</span>`;
  if (as === 'age' && typeof value === 'string')
    return html`<time datetime=${value} title=${shown(field, value, type)}>${ago(value)}</time>`;
  const text = shown(field, value, type);
  const part = as === 'thing' ? brief(field, value, type) : as === 'day' ? text.slice(0, 10) : text;
  return html`<span title=${text}>${part}</span>`;
}
const State = ({ value, words }: { value: string; words?: string | undefined }) =>
  html`<span class="state ${toneOf(value)}">${words ?? enumInWords(value)}</span>`;
