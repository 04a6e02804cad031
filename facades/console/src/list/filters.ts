/** The filters above a list. They stand in the address. */
import { html } from 'htm/preact';
import { enumInWords, inWords, isRequired, rootField, valuesOf } from '../model.ts';
import type { Page } from '../pages/page.ts';
import { go, place } from '../place.ts';
import { INPUTS, inTime, shapeOf, typed, YES_NO } from '../values.ts';

/** Filters that take anything. Their fields are as wide as their words. */
const SEARCHES: ReadonlySet<string> = new Set(['search', 'q']);

export function Filters({ page }: { page: Page }) {
  const set = (name: string) => (event: Event) => {
    const { type, value } = event.target as HTMLInputElement;
    const given = type === INPUTS.time ? inTime(value) : value;
    go(page.path, { ...Object.fromEntries(place.value.search), row: '', [name]: given });
  };
  const args = page.filters!.map((filter) => rootField(page.list).args.find(({ name }) => name === filter)!);
  return html`<div class="filters">${args.map(({ name, type, description, defaultValue }) => {
    const shape = shapeOf(type);
    const values = shape === 'yes or no' ? ['true', 'false'] : valuesOf(type);
    const value = typed(place.value.search.get(name), shape);
    const isSearch = SEARCHES.has(name);
    return html`<label title=${description} class=${isSearch ? 'search' : ''}>${inWords(name)}${shape === 'time' && ' (UTC)'}
      ${
        values
          ? html`<select value=${value} onChange=${set(name)}>
              <option value="">all</option>${values.map((one) => html`<option value=${one}>${YES_NO[one] ?? enumInWords(one)}</option>`)}
            </select>`
          : html`<input type=${isSearch ? 'search' : (INPUTS[shape] ?? 'text')} step=${shape === 'time' ? 1 : undefined} value=${value}
              placeholder=${isSearch ? description?.split('. ')[0] : isRequired(type) ? (defaultValue ?? '') : 'any'} onChange=${set(name)} />`
      }
    </label>`;
  })}</div>`;
}
