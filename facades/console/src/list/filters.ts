/** The filters above a list. They stand in the address. */
import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import { type Argument, enumInWords, inWords, isRequired, rootField, valuesOf } from '../model.ts';
import { afterLast } from '../pace.ts';
import type { Page } from '../pages/page.ts';
import { go, place, replace } from '../place.ts';
import { INPUTS, inTime, shapeOf, typed, YES_NO } from '../values.ts';

/** Filters that take anything. Their fields are as wide as their words. */
const SEARCHES: ReadonlySet<string> = new Set(['search', 'q']);

/** A text that the operator still types. The address has it after a rest of the keys. */
const draft = signal<{ page: Page; name: string; text: string } | undefined>(undefined);
const afterTyping = afterLast(300);

/** The filters of the address with another value of one. The open row closes. */
const searchWith = (name: string, value: string) => ({
  ...Object.fromEntries(place.value.search),
  row: '',
  [name]: value,
});
const textIn = (event: Event): string => (event.target as HTMLInputElement).value;

/** Puts the text into the address, unless the operator has left the page. */
function apply(): void {
  if (!draft.value) return;
  const { page, name, text } = draft.value;
  draft.value = undefined;
  if (place.value.path === page.path) replace(page.path, searchWith(name, text));
}

export function Filters({ page }: { page: Page }) {
  const args = page.filters!.map((filter) => rootField(page.list).args.find(({ name }) => name === filter)!);
  return html`<div class="filters">${args.map((argument) => {
    const { name, type, description } = argument;
    const isTime = shapeOf(type) === 'time';
    return html`<label title=${description} class=${SEARCHES.has(name) ? 'search' : ''}>${inWords(name)}${isTime && ' (UTC)'}
      ${fieldOf(page, argument)}
    </label>`;
  })}</div>`;
}

function fieldOf(page: Page, { name, type, description, defaultValue }: Argument) {
  const shape = shapeOf(type);
  const value = typed(place.value.search.get(name), shape);
  const set = (given: string) => go(page.path, searchWith(name, given));
  const values = shape === 'yes or no' ? ['true', 'false'] : valuesOf(type);
  if (values)
    return html`<select value=${value} onChange=${(event: Event) => set(textIn(event))}>
      <option value="">all</option>${values.map((one) => html`<option value=${one}>${YES_NO[one] ?? enumInWords(one)}</option>`)}
    </select>`;
  if (INPUTS[shape])
    return html`<input type=${INPUTS[shape]} step=${shape === 'time' ? 1 : undefined} value=${value}
      onChange=${(event: Event) => set(shape === 'time' ? inTime(textIn(event)) : textIn(event))} />`;
  const isTyped = draft.value?.page === page && draft.value.name === name;
  const onInput = (event: Event) => {
    draft.value = { page, name, text: textIn(event) };
    afterTyping(apply);
  };
  const isSearch = SEARCHES.has(name);
  return html`<input type=${isSearch ? 'search' : 'text'} value=${isTyped ? draft.value!.text : value}
    placeholder=${isSearch ? description?.split('. ')[0] : isRequired(type) ? (defaultValue ?? '') : 'any'}
    onInput=${onInput} onChange=${apply} />`;
}
