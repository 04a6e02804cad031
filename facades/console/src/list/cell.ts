/** A value of a row, as a cell of a list and the details show it. */
import { html } from 'htm/preact';
import type { Row } from '../api.ts';
import { memberOf, rootField, type TypeRef } from '../model.ts';
import type { Column, Page } from '../pages/page.ts';
import { ago, brief, shown, toneOf } from '../values.ts';
import { isPaged } from './rows.ts';

export const classOf = ({ as, wide }: Column): string => `cell ${as ?? ''} ${wide ? 'wide' : ''}`;

/** The type of a field of the rows. */
export function typeIn({ list }: Page, field: string): TypeRef | undefined {
  const { type } = rootField(list);
  return memberOf(isPaged(type) ? memberOf(type, 'data') : type, field);
}

export function Cell({ column: { field, as }, row, type }: { column: Column; row: Row; type: TypeRef | undefined }) {
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
