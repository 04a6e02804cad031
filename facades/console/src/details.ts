/** The parts of an open row that its list does not have. */
import { effect, signal } from '@preact/signals';
import { html } from 'htm/preact';
import { changes, graphql, type Row } from './api.ts';
import { inWords, memberOf, rootField } from './model.ts';
import type { Page } from './pages/page.ts';
import { place } from './place.ts';
import { shown } from './values.ts';

/** The parts, with the id of their row. */
const read = signal<{ id: string; parts: Row } | undefined>(undefined);

/** Reads the parts of the open row, whenever another row opens or the service changes. */
export const followRow = (pages: readonly Page[]): (() => void) =>
  effect(() => {
    changes.value;
    const { path, search } = place.value;
    const [details, id] = [pages.find((page) => page.path === path)?.details, search.get('row')];
    if (!details || !id) return;
    const query = `query ($id: ID!) { ${details.field}(id: $id) { ${details.fields} } }`;
    void graphql<Record<string, Row>>(query, { id }).then(
      (answer) => {
        if (place.peek().search.get('row') === id) read.value = { id, parts: answer[details.field]! };
      },
      // The row of the list stays, and the next change asks again.
      () => {},
    );
  });

/** Shows each part under its name: a list of things, or one thing. @param field the root field that gives the parts */
export function Parts({ id, field }: { id: string; field: string }) {
  if (read.value?.id !== id) return null;
  const { type } = rootField(field);
  return html`${Object.entries(read.value.parts).map(
    ([name, part]) => html`<section><h3>${inWords(name)}</h3><ul>
      ${[part].flat().map((thing) => html`<li>${shown(name, thing, memberOf(type, name))}</li>`)}
    </ul></section>`,
  )}`;
}
