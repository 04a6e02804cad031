/** The pages of the console fit the schema: every list answers, and every button has its mutation. */
import type { GraphQLField, GraphQLInputObjectType } from 'graphql';
import { getNamedType, isInputObjectType, isNonNullType, isScalarType, parse, validate } from 'graphql';
import { beforeAll, describe, expect, it } from 'vitest';
import { CONSOLE_PATHS, consoleFile } from '../../../facades/console/console.ts';
import { PAGES } from '../../../facades/console/src/pages/index.ts';
import { type Action, nameOf, type Page } from '../../../facades/console/src/pages/page.ts';
import { HOSTNAME, ORDER_NUMBER } from '../../../facades/console/src/palette/patterns.ts';
import { LONG, NUMBERS } from '../../../facades/console/src/scalars.ts';
import { isOrderNumber } from '../../../entities/ids.ts';
import { schema } from '../../../schema/index.ts';
import { startFreehold } from '../../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();
const queries = schema.getQueryType()!.getFields();
const mutations = schema.getMutationType()!.getFields();
const SCRIPTS_MAX = 150 * 1024;
/** A row that has every field. */
const ROW = new Proxy({}, { get: (_, name) => String(name) });

/** Makes rows that share what a careless key would take for the name: operators, images, and totals of a day. */
beforeAll(async () => {
  const add = 'mutation { addOperator(input: { name: "zoe", role: OWNER }) { operator { id } } }';
  const { id } = (await operator(add)).data.addOperator.operator;
  await operator(`mutation { endOperator(id: "${id}") { state } }`);
  await operator(add);
  for (const engine of ['fra', 'ams'])
    for (const virtualMachine of [true, false]) {
      const alias = virtualMachine ? 'alma-9-vm' : 'alma-9';
      await db.query(
        `insert into engine_image (name, engine, code, alias, virtual_machine, server, server_alias)
         values ($1, $2, 'alma-9', $3, $4, 'https://images.example.org', 'alma')`,
        [`${engine}/${alias}`, engine, alias, virtualMachine],
      );
    }
  const account = await newAccount();
  await account.fund(30);
  await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'named' });
});

/** Reads the list of a page, with the least arguments that it takes. */
async function answerOf({ list, fields }: Page) {
  const { type, args } = queries[list]!;
  const needed = args.filter((one) => isNonNullType(one.type) && one.defaultValue === undefined);
  const given = needed.length ? `(${needed.map(({ name }) => `${name}: "x"`).join(', ')})` : '';
  const isPage = /Page!?$/.test(String(type));
  const { data, errors } = await operator(
    `{ ${list}${given} { ${isPage ? `data { ${fields} } nextCursor` : fields} } }`,
  );
  return { errors, rows: isPage ? data?.[list].data : data && [data[list]].flat() };
}

describe.each(PAGES.map((page) => [page.path, page] as const))('The page %s', (_, page) => {
  it('reads a list of the schema, with the fields of its columns and its key', async () => {
    const list = queries[page.list]!;
    expect((await answerOf(page)).errors).toBeUndefined();
    const fields = page.fields.replace(/\{[^}]*\}/g, '').split(/\s+/);
    expect(
      [...page.key.split(' '), ...page.columns.map(({ field }) => field)].filter((field) => !fields.includes(field)),
    ).toEqual([]);
    const names = list.args.map(({ name }) => name);
    expect((page.filters ?? []).filter((filter) => !names.includes(filter))).toEqual([]);
  });

  it('gives no two rows the same name', async () => {
    const names = (await answerOf(page)).rows.map((row: object) => nameOf(page, { ...row }));
    expect(names).toEqual([...new Set(names)]);
    const shared = ['stock', 'engine-images', 'daily-totals', 'operators'];
    if (shared.includes(page.path)) expect(names.length).toBeGreaterThan(1);
  });

  it('has no button that gives a key, because each form makes one of its own', () => {
    const giving = [...(page.actions ?? []), ...(page.rowActions ?? [])].filter(({ of }) => 'key' in (of?.(ROW) ?? {}));
    expect(giving.map(({ label }) => label)).toEqual([]);
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

it.each(
  PAGES.flatMap(({ path, rowActions = [] }) => rowActions.map((action) => [action.mutation, path, action] as const)),
)('The button %s on the page %s asks for the value if it sets one', (mutation, _, { of }) => {
  const names = mutations[mutation]!.args.map(({ name }) => name);
  const asks = names.some((name) => !(name in (of?.(ROW) ?? {})) || name === 'input');
  expect(asks || !/^set/.test(mutation)).toBe(true);
});

it.each(
  PAGES.flatMap(({ path, actions = [], rowActions = [] }) =>
    [...actions, ...rowActions].flatMap(({ mutation, shows, tells }) => {
      const selection = shows ?? tells;
      return selection ? [[mutation, path, selection] as const] : [];
    }),
  ),
)('The answer to %s on the page %s has the fields that it shows', (mutation, _, selection) => {
  const type = getNamedType(mutations[mutation]!.type);
  const document = parse(`fragment Shown on ${type} { ${selection} }`);
  const faults = validate(schema, document).filter(({ message }) => !message.includes('is never used'));
  expect(faults).toEqual([]);
});

function unknownArguments({ mutation, of, first }: Action): string[] {
  const field = mutations[mutation] as GraphQLField<unknown, unknown> | undefined;
  if (!field) return [`There is no mutation ${mutation}.`];
  const takes = (given: object, names: string[], within: string) =>
    Object.keys(given).flatMap((name) => (names.includes(name) ? [] : [`${within}.${name}`]));
  const given = { ...first?.(ROW), ...of?.(ROW) };
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

describe('The palette', () => {
  it('knows a host name by the pattern of the schema', () => {
    const { jsonSchema } = schema.getType('Hostname')!.extensions as { jsonSchema: { pattern: string } };
    expect(HOSTNAME.source).toBe(new RegExp(jsonSchema.pattern).source);
  });

  it('knows an order number as the service does, by each of its letters', () => {
    const letters = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
    const texts = [...letters.map((letter) => `SRV-${letter.repeat(10)}`), 'SRV-111111111', 'SRV-11111111111', 'SRV-'];
    expect(texts.filter((text) => ORDER_NUMBER.test(text))).toEqual(texts.filter((text) => isOrderNumber('SRV', text)));
  });
});

it(`All scripts of the console have less than ${SCRIPTS_MAX / 1024} KiB compressed`, () => {
  const scripts = CONSOLE_PATHS.map((path) => consoleFile(path)!).filter(({ type }) => type === 'text/javascript');
  const bytes = scripts.reduce((sum, { compressed }) => sum + compressed.length, 0);
  expect(scripts.length).toBeGreaterThan(15);
  expect(bytes).toBeLessThan(SCRIPTS_MAX);
});
