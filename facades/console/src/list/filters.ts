/** The filters above a list. They stand in the address. */
import { html } from 'htm/preact';
import { inWords, isRequired, rootField, valuesOf } from '../model.ts';
import type { Page } from '../pages/page.ts';
import { go, place } from '../place.ts';
import { INPUTS, inTime, shapeOf, typed } from '../values.ts';

/** A filter that takes anything. Its field is as wide as its words. */
const SEARCH = 'search';

export function Filters({ page }: { page: Page }) {
  const set = (name: string) => (event: Event) => {
    const { type, value } = event.target as HTMLInputElement;
    const given = type === INPUTS.time ? inTime(value) : value;
    go(page.path, { ...Object.fromEntries(place.value.search), row: '', [name]: given });
  };
  const args = page.filters!.map((filter) => rootField(page.list).args.find(({ name }) => name === filter)!);
  return html`<div class="filters">${args.map(({ name, type, description, defaultValue }) => {
    const [values, shape] = [valuesOf(type), shapeOf(type)];
    const value = typed(place.value.search.get(name), shape);
    const isSearch = name === SEARCH;
    return html`<label title=${description} class=${isSearch ? 'search' : ''}>${inWords(name)}
      ${
        values
          ? html`<select value=${value} onChange=${set(name)}>
              <option value="">all</option>${values.map((one) => html`<option value=${one}>${one.toLowerCase()}</option>`)}
            </select>`
          : html`<input type=${isSearch ? 'search' : (INPUTS[shape] ?? 'text')} step=${shape === 'time' ? 1 : undefined} value=${value}
              placeholder=${isSearch ? description : isRequired(type) ? (defaultValue ?? '') : 'any'} onChange=${set(name)} />`
      }
    </label>`;
  })}</div>`;
}
