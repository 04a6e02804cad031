/** The names that a form offers for an argument, such as the regions that there are. */
import { signal } from '@preact/signals';
import { graphql, may } from '../api.ts';

/** The query that gives the names, by the argument. */
const NAMES: Record<string, string> = {
  region: 'regions { code }',
  engine: 'engines { name }',
  serviceCode: 'tiers { code }',
  coin: 'rates { coin }',
};

/** The names for the arguments of the open form. */
export const suggestions = signal<Record<string, string[]>>({});

/** Reads the names for the arguments. A form works without them. @param own queries that replace those of all forms */
export async function suggest(args: readonly string[], own: Record<string, string> = {}): Promise<void> {
  suggestions.value = {};
  const queries = Object.entries({ ...NAMES, ...own }).filter(
    ([name, query]) => args.includes(name) && may(query.split(' ')[0]!),
  );
  if (!queries.length) return;
  const answer = await graphql(`{ ${queries.map(([name, query]) => `${name}: ${query}`).join(' ')} }`);
  suggestions.value = Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, textsIn(value)]));
}

const textsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : value && typeof value === 'object' ? Object.values(value).flatMap(textsIn) : [];
