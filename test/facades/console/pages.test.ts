/** The pages of the console fit the schema: every list answers, and every button has its mutation. */
import type { GraphQLField, GraphQLInputObjectType } from 'graphql';
import { getNamedType, isInputObjectType, isNonNullType, isScalarType, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { consoleFiles } from '../../../facades/console/console.ts';
import { PAGES } from '../../../facades/console/src/pages/index.ts';
import type { Action } from '../../../facades/console/src/pages/page.ts';
import { LONG, NUMBERS } from '../../../facades/console/src/scalars.ts';
import { schema } from '../../../schema/index.ts';
import { startFreehold } from '../../setup/freehold.ts';

const { operator } = await startFreehold();
const queries = schema.getQueryType()!.getFields();
const mutations = schema.getMutationType()!.getFields();
const SCRIPTS_MAX = 150 * 1024;
/** A row that has every field. */
const ROW = new Proxy({}, { get: (_, name) => String(name) });

describe.each(PAGES.map((page) => [page.path, page] as const))('The page %s', (_, page) => {
  it('reads a list of the schema, with the fields of its columns and its key', async () => {
    const list = queries[page.list]!;
    const isPage = /Page!?$/.test(String(list.type));
    const needed = list.args.filter(({ type, defaultValue }) => isNonNullType(type) && defaultValue === undefined);
    const given = needed.length ? `(${needed.map(({ name }) => `${name}: "x"`).join(', ')})` : '';
    const { errors } = await operator(
      `{ ${page.list}${given} { ${isPage ? `data { ${page.fields} } nextCursor` : page.fields} } }`,
    );
    expect(errors).toBeUndefined();
    const fields = page.fields.replace(/\{[^}]*\}/g, '').split(/\s+/);
    expect([page.key, ...page.columns.map(({ field }) => field)].filter((field) => !fields.includes(field))).toEqual(
      [],
    );
    const names = list.args.map(({ name }) => name);
    expect((page.filters ?? []).filter((filter) => !names.includes(filter))).toEqual([]);
  });

  it('has only buttons whose mutations take what the row gives', () => {
    const wrong = [...(page.actions ?? []), ...(page.rowActions ?? [])].flatMap(unknownArguments);
    expect(wrong).toEqual([]);
  });
});

it.each(PAGES.flatMap(({ path, details }) => (details ? [[path, details] as const] : [])))(
  'The details of a row of %s read fields of the schema',
  (_, { field, fields }) => {
    expect(validate(schema, parse(`query ($id: ID!) { ${field}(id: $id) { ${fields} } }`))).toEqual([]);
  },
);

function unknownArguments({ mutation, of }: Action): string[] {
  const field = mutations[mutation] as GraphQLField<unknown, unknown> | undefined;
  if (!field) return [`There is no mutation ${mutation}.`];
  const takes = (given: object, names: string[], within: string) =>
    Object.keys(given).flatMap((name) => (names.includes(name) ? [] : [`${within}.${name}`]));
  const given = of?.(ROW) ?? {};
  const { input } = given as { input?: object };
  const type = getNamedType(field.args.find(({ name }) => name === 'input')?.type);
  const inputs = isInputObjectType(type) ? Object.keys((type as GraphQLInputObjectType).getFields()) : [];
  return [
    ...takes(
      given,
      field.args.map(({ name }) => name),
      mutation,
    ),
    ...takes(input ?? {}, inputs, `${mutation}.input`),
  ];
}

describe('A form', () => {
  it('sends each scalar as the schema takes it, a number or a text', () => {
    const given = Object.values(mutations).flatMap(({ args }) =>
      args.flatMap(({ type }) => {
        const named = getNamedType(type);
        return isInputObjectType(named)
          ? Object.values(named.getFields()).map((one) => getNamedType(one.type))
          : [named];
      }),
    );
    const shapes = new Map(
      given.filter(isScalarType).map(({ name, extensions }) => {
        const { type } = (extensions.jsonSchema ?? {}) as { type?: string };
        return [name, type === 'number' || type === 'integer' || name === 'Int' || name === 'Float'];
      }),
    );
    const numbers = [...shapes].filter(([, isNumber]) => isNumber).map(([name]) => name);
    expect(numbers.filter((name) => !NUMBERS.has(name))).toEqual([]);
    expect([...shapes].filter(([name, isNumber]) => !isNumber && NUMBERS.has(name))).toEqual([]);
    expect([...LONG].filter((name) => !schema.getType(name))).toEqual([]);
  });
});

it(`All scripts of the console have less than ${SCRIPTS_MAX / 1024} KiB compressed`, () => {
  const scripts = [...consoleFiles()].filter(([, { type }]) => type === 'text/javascript');
  const bytes = scripts.reduce((sum, [, { compressed }]) => sum + compressed.length, 0);
  expect(scripts.length).toBeGreaterThan(15);
  expect(bytes).toBeLessThan(SCRIPTS_MAX);
});
