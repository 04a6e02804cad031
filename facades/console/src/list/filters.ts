/** The filters above a list. They stand in the address. */
import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import { graphql, may } from '../api.ts';
import { type Argument, enumInWords, inWords, isRequired, rootField, valuesOf } from '../model.ts';
import { afterLast } from '../pace.ts';
import { ALL, filterIn, type Page } from '../pages/page.ts';
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

/** A thing that a filter offers by its name. */
interface Named {
  id: string;
  name: string;
  endedAt?: string | null;
}
/** The things that the filters of a page offer, by the name of the filter. */
const offered = signal<{ page: Page; things: Record<string, Named[]> } | undefined>(undefined);

/** Reads the things. The filters work without them, by ids. */
async function readOffered(page: Page): Promise<void> {
  const readable = Object.entries(page.choices ?? {}).filter(([, { query }]) => may(query.split(' ')[0]!));
  if (!readable.length) return;
  const answer = await graphql<Record<string, Named[]>>(
    `{ ${readable.map(([name, { query }]) => `${name}: ${query}`).join(' ')} }`,
  );
  const things = readable.map(([name, { also }]): [string, Named[]] => [name, [...answer[name]!, also]]);
  offered.value = { page, things: Object.fromEntries(things) };
}
/** The ids and names of a filter, or undefined without a choice. People may share a name when one of them has ended. */
const choicesOf = (page: Page, name: string): [id: string, words: string][] | undefined =>
  offered.value?.page === page
    ? offered.value.things[name]?.map(({ id, name: own, endedAt }) => [id, endedAt ? `${own} (ended)` : own])
    : undefined;

export function Filters({ page }: { page: Page }) {
  useEffect(() => void readOffered(page).catch(() => {}), [page]);
  const args = page.filters!.map((filter) => rootField(page.list).args.find(({ name }) => name === filter)!);
  return html`<div class="filters">${args.map((argument) => {
    const { name, type, description } = argument;
    const isTime = shapeOf(type) === 'time';
    return html`<label title=${description} class=${SEARCHES.has(name) ? 'search' : ''}>${page.words?.[name]?.title ?? inWords(name)}${isTime && ' (UTC)'}
      ${fieldOf(page, argument)}
    </label>`;
  })}</div>`;
}

/** The values of a type that takes few, in words. */
const valuesIn = (
  { type }: Argument,
  words: Record<string, string> = YES_NO,
): [value: string, words: string][] | undefined =>
  (shapeOf(type) === 'yes or no' ? ['true', 'false'] : valuesOf(type))?.map((one) => [
    one,
    words[one] ?? enumInWords(one),
  ]);

function fieldOf(page: Page, argument: Argument) {
  const { name, type, description, defaultValue } = argument;
  const shape = shapeOf(type);
  const value = typed(filterIn(page, name, place.value.search), shape);
  const set = (given: string) => go(page.path, searchWith(name, given));
  const all = page.starts?.[name] ? ALL : '';
  const choices = choicesOf(page, name) ?? valuesIn(argument, page.words?.[name]?.values);
  if (choices)
    return html`<select value=${value || all} onChange=${(event: Event) => set(textIn(event))}>
      <option value=${all}>all</option>${choices.map(([one, words]) => html`<option value=${one} selected=${one === value}>${words}</option>`)}
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
