/** The commands that docs/operate prints for the operator. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, validate } from 'graphql';
import { expect, it } from 'vitest';
import { schema } from '../../schema/index.ts';
import { startFreehold } from '../setup/freehold.ts';

const { operator } = await startFreehold();

const PAGES = readdirSync('docs/operate').filter((name) => name.endsWith('.md'));
const read = (page: string) => readFileSync(join('docs/operate', page), 'utf8');
/** In quotes, or on standard input. */
const DOCUMENT = /^operator '([^']+)'|^graphql <<'?EOF'?\n([\s\S]*?)^EOF$/gm;
const documentsOf = (text: string) => [...text.matchAll(DOCUMENT)].map(([, quoted, typed]) => (quoted ?? typed)!);
/** The commands of these pages that need no id of the reader. */
const runnable = ['accounts.md', 'catalog.md', 'running.md'].flatMap((page) =>
  [...read(page).matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) => documentsOf(block!)),
);

it.each(PAGES.flatMap((page) => documentsOf(read(page)).map((document) => [page, document])))(
  '%s prints an operation of the schema: %s',
  (_, document) => {
    expect(validate(schema, parse(document))).toEqual([]);
  },
);

it.each(runnable)('the service answers the printed command: %s', async (document) => {
  expect((await operator(document)).errors).toBeUndefined();
});

it('the guide prints commands for messages, events and open matters', () => {
  for (const field of ['messages', 'operatorEvents', 'openMatters'])
    expect(
      runnable.filter((document) => document.includes(`${field}(`) || document.includes(`${field} {`)),
    ).toHaveLength(1);
});
