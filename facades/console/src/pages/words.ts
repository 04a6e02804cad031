/** Sentences of the service in the words of the console. */
import { inUtc } from '../values.ts';
import { PAGES } from './index.ts';

/** The words of the buttons and pages, by the fields of GraphQL that the service names. */
const WORDS = new Map([
  ...PAGES.flatMap(({ actions = [], rowActions = [] }) => [...actions, ...rowActions])
    .toReversed()
    .map(({ mutation, label }) => [mutation, label] as const),
  ...PAGES.map(({ list, title }) => [list, title] as const),
]);
/** A sentence with buttons and pages in the place of fields of GraphQL, and with times as pages show them. */
export const forConsole = (text: string): string =>
  text
    .replace(/(call )?`?\b([a-z]+[A-Z]\w+)\b`?/g, (all, call, field) =>
      WORDS.has(field) ? `${call ? 'press ' : ''}“${WORDS.get(field)}”` : all,
    )
    .replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => `${inUtc(time)} UTC`);
