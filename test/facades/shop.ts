/** A small schema with documents of its own, for what the catalog alone cannot show. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import {
  GraphQLBoolean,
  GraphQLEnumType,
  type GraphQLFieldConfig,
  GraphQLFloat,
  GraphQLID,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
} from 'graphql';
import { onTestFinished } from 'vitest';
import { publicServer } from '../../facades/http.ts';
import { type Operation, readOperations } from '../../facades/operations.ts';
import type { Caller } from '../../facades/run.ts';
import { ApiError, type RequiredScope, schema as realSchema, type Viewer } from '../../schema/index.ts';

const scalar = (name: string) => realSchema.getType(name) as GraphQLScalarType;
const some = <T extends GraphQLOutputType>(type: T) => new GraphQLNonNull(type as never) as unknown as T;
const listOf = <T extends GraphQLOutputType>(type: T) => some(new GraphQLList(some(type)));

const Color = new GraphQLEnumType({ name: 'Color', description: 'A color.', values: { RED: {}, DARK_BLUE: {} } });
const Part = new GraphQLObjectType({
  name: 'Part',
  description: 'A part of a thing.',
  fields: { name: { type: some(GraphQLString) }, color: { type: Color }, weight: { type: some(GraphQLFloat) } },
});
const Thing = new GraphQLObjectType({
  name: 'Thing',
  description: 'A thing.',
  fields: {
    thingId: { type: some(GraphQLID), description: 'Identifies the thing.' },
    color: { type: some(Color) },
    otherColors: { type: listOf(Color) },
    labels: { type: some(scalar('JSON')) },
    priceUsd: { type: some(scalar('Usd')) },
    madeAt: { type: scalar('DateTime') },
    weight: { type: GraphQLFloat },
    parts: { type: listOf(Part) },
  },
});
const Something = new GraphQLUnionType({
  name: 'Something',
  description: 'A thing or a part.',
  types: [Thing, Part],
  resolveType: (value) => ('thingId' in (value as object) ? 'Thing' : 'Part'),
});
const ThingPage = new GraphQLObjectType({
  name: 'ThingPage',
  description: 'A page of things.',
  fields: {
    data: { type: listOf(Thing) },
    nextCursor: { type: GraphQLString },
    hasMore: { type: some(GraphQLBoolean) },
  },
});
const Ordered = new GraphQLObjectType({
  name: 'OrderedThing',
  description: 'A thing that was ordered.',
  fields: { thing: { type: some(Thing) }, part: { type: Part }, plaintext: { type: some(GraphQLString) } },
});
const Echo = new GraphQLObjectType({
  name: 'Echo',
  description: 'What arrived.',
  fields: { args: { type: some(scalar('JSON')) }, caller: { type: scalar('JSON') } },
});

const Inner = new GraphQLInputObjectType({
  name: 'InnerInput',
  fields: { innerColor: { type: Color }, count: { type: new GraphQLNonNull(GraphQLInt), description: 'How many.' } },
});
const OrderInput = new GraphQLInputObjectType({
  name: 'OrderThingInput',
  description: 'What to order.',
  fields: {
    serviceCode: { type: new GraphQLNonNull(scalar('Code')), description: 'The code of a tier.' },
    amountUsd: { type: scalar('TopUpAmount') },
    password: { type: scalar('Password') },
    email: { type: scalar('Email') },
    hostname: { type: scalar('Hostname') },
    region: { type: scalar('Code') },
    labels: { type: scalar('Labels') },
    anything: { type: scalar('JSON') },
    color: { type: Color, description: 'Its color.' },
    otherColors: { type: new GraphQLList(new GraphQLNonNull(Color)) },
    autoRenew: { type: new GraphQLNonNull(GraphQLBoolean), defaultValue: true },
    inner: { type: Inner },
    freeText: { type: GraphQLString },
    float: { type: GraphQLFloat },
  },
});

export const thing = (thingId: string, more: object = {}) => ({
  thingId,
  color: 'DARK_BLUE',
  otherColors: ['RED', 'DARK_BLUE'],
  labels: { STATUS: 'RUNNING', color: 'DARK_BLUE' },
  priceUsd: 1_500_000n,
  madeAt: null,
  weight: null,
  parts: [{ name: 'lid', color: 'RED', weight: 1.5 }],
  ...more,
});

type Field = GraphQLFieldConfig<unknown, Caller>;
const field = (scope: RequiredScope, config: Field): Field => ({ ...config, extensions: { scope } });
const id = { thingId: { type: new GraphQLNonNull(GraphQLID), description: 'The id of a thing.' } };
const caller = ({ viewer, requestId, userAgent }: Caller) => ({
  scopes: viewer && [...viewer.scopes],
  requestId,
  userAgent,
});

/** What the resolvers of `slow` saw of their signals. */
export const aborted: boolean[] = [];

export const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      thing: field('read', {
        type: Thing,
        args: id,
        resolve: (_, { thingId }) => (thingId === 'none' ? null : thing(thingId)),
      }),
      things: field('read', {
        type: some(ThingPage),
        args: {
          limit: { type: new GraphQLNonNull(scalar('PageLimit')), defaultValue: 50, description: 'How many.' },
          color: { type: new GraphQLList(new GraphQLNonNull(Color)), description: 'Only these.' },
          heavy: { type: GraphQLBoolean, description: 'Only heavy ones.' },
        },
        resolve: (_, args) => ({
          data: [thing('one', { labels: args })],
          nextCursor: null,
          hasMore: false,
        }),
      }),
      something: field('public', {
        type: some(Something),
        args: id,
        resolve: (_, { thingId }) => (thingId === 'part' ? { name: 'lid', color: 'RED', weight: 2 } : thing(thingId)),
      }),
      parts: field('public', { type: listOf(Part), resolve: () => [{ name: 'lid', color: null, weight: 1 }] }),
      colors: field('public', { type: listOf(Color), resolve: () => ['RED', 'DARK_BLUE'] }),
      number: field('public', { type: some(GraphQLInt), resolve: () => 7 }),
      broken: field('public', {
        type: some(Part),
        resolve: () => {
          throw new TypeError('The secret "hunter2" was: hunter2');
        },
      }),
      refused: field('public', {
        type: some(Part),
        args: { code: { type: new GraphQLNonNull(GraphQLString), description: 'Which error.' } },
        resolve: (_, { code }) => {
          throw new ApiError(code, undefined, {
            retryAfter: 7,
            availableRegions: ['ams'],
            requiredMicros: 6_000_000n,
            balanceMicros: 1n,
            headers: { 'x-more': 'more' },
          });
        },
      }),
      slow: field('public', {
        type: some(Part),
        resolve: (_, __, { signal }) =>
          new Promise((resolve) => {
            const timer = setTimeout(() => resolve({ name: 'late', weight: 1 }), 400);
            signal.addEventListener('abort', () => {
              clearTimeout(timer);
              aborted.push(true);
              resolve({ name: 'gone', weight: 1 });
            });
          }),
      }),
    },
  }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      orderThing: field('servers', {
        type: some(Ordered),
        args: { input: { type: new GraphQLNonNull(OrderInput) } },
        resolve: () => ({ thing: thing('new'), part: null, plaintext: 'shown once' }),
      }),
      echo: field('public', {
        type: some(Echo),
        args: {
          input: { type: OrderInput },
          mode: { type: Color, description: 'How.' },
          key: { type: scalar('KeyName'), description: 'Which key.' },
        },
        resolve: (_, args, context) => ({ args, caller: caller(context) }),
      }),
      deleteThing: field('full', { type: some(Thing), args: id, resolve: (_, { thingId }) => thing(thingId) }),
      changeThing: field('full', {
        type: some(Thing),
        args: { ...id, input: { type: new GraphQLNonNull(Inner) } },
        resolve: (_, { thingId }) => thing(thingId),
      }),
    },
  }),
});

export const DOCUMENTS = `
"A thing, as everybody sees it."
fragment Thing on Thing { thingId color otherColors labels priceUsd madeAt weight parts { ...Part } }
"A part."
fragment Part on Part { name color weight }

"Shows one thing."
query GetThing($thingId: ID!) @http(method: GET, path: "/v1/things/{thing_id}") @tool(name: "get_thing") {
  thing(thingId: $thingId) { ...Thing }
}
"Lists things. Newest first."
query ListThings($limit: PageLimit, $color: [Color!], $heavy: Boolean)
@http(method: GET, path: "/v1/things") @tool(name: "list_things") {
  things(limit: $limit, color: $color, heavy: $heavy) { data { ...Thing } nextCursor hasMore }
}
"Orders a thing."
mutation OrderThing($input: OrderThingInput!) @http(method: POST, path: "/v1/things") @tool(name: "order_thing") {
  orderThing(input: $input) { thing @spread { ...Thing } part @spread { lid: name } plaintext }
}
"Changes a thing."
mutation ChangeThing($thingId: ID!, $input: InnerInput!)
@http(method: PATCH, path: "/v1/things/{thing_id}") @tool(name: "change_thing", idempotent: true) {
  changeThing(thingId: $thingId, input: $input) { ...Thing }
}
"Deletes a thing."
mutation DeleteThing($thingId: ID!) @http(method: DELETE, path: "/v1/things/{thing_id}") @tool(name: "delete_thing") {
  deleteThing(thingId: $thingId) { ...Thing }
}
"Answers what arrived."
mutation Echo(
  $input: OrderThingInput
  $mode: Color @header(name: "X-Mode")
  "Makes it safe to repeat."
  $key: KeyName @header(name: "Idempotency-Key")
) @http(method: POST, path: "/v1/echo") @tool(name: "echo") {
  echo(input: $input, mode: $mode, key: $key) { args caller }
}
"Shows a thing or a part."
query GetSomething($thingId: ID!)
@http(method: GET, path: "/v1/something/{thing_id}", maxAgeSeconds: 60) @tool(name: "get_something") {
  something(thingId: $thingId) { ...Thing ... on Part { name color weight } }
}
"Lists the parts."
query ListParts @http(method: GET, path: "/v1/parts") @tool(name: "list_parts", title: "All parts") { parts { ...Part } }
"Lists the parts, and says a number."
query Both @http(method: GET, path: "/v1/both") { parts { ...Part } theNumber: number colors }
query Numbers @http(method: GET, path: "/v1/number") { number }
"Breaks."
query Broken @http(method: GET, path: "/v1/broken") @tool(name: "broken") { broken { ...Part } }
"Refuses."
query Refused($code: String!) @http(method: GET, path: "/v1/refused/{code}") @tool(name: "refused") {
  refused(code: $code) { ...Part }
}
"Takes its time."
query Slow @http(method: GET, path: "/v1/slow") { slow { ...Part } }
"Will order two things."
mutation OrderTwo($input: OrderThingInput!) @http(method: POST, path: "/v1/pairs", status: PLANNED) {
  orderThing(input: $input) { thing { ...Thing } }
}
`
  .replace('theNumber', 'the_number')
  .replace('query Numbers', '"Says a number."\nquery Numbers');

/** Puts documents into a folder that goes when the test ends. */
export function folderOf(documents: Record<string, string>, onEnd: (end: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'freehold-documents-'));
  onEnd(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(documents)) writeFileSync(join(folder, name), text);
  return folder;
}

export const viewer = (...scopes: RequiredScope[]): Viewer => ({
  accountId: 'acct_test',
  kind: 'api_key',
  credentialId: 'key_test',
  name: null,
  scopes: new Set<RequiredScope>(['public', ...scopes]),
  expiresAt: null,
});

/** `Bearer read servers` is a viewer with these scopes. */
export async function authenticate(authorization: string | undefined): Promise<Viewer | null> {
  if (authorization === undefined) return null;
  const scopes = /^Bearer ((public|read|servers|billing|full)( (read|servers|billing|full))*)$/.exec(
    authorization,
  )?.[1];
  if (!scopes) throw new ApiError('invalid_credential');
  return viewer(...(scopes.split(' ') as RequiredScope[]));
}

export interface Shop {
  app: FastifyInstance;
  operations: Operation[];
  /** What was logged. */
  errors: Readonly<Record<string, unknown>>[];
  answers: Readonly<Record<string, unknown>>[];
}

let requests = 0;

/** The public server over the small schema; it closes when the given hook runs. */
export async function openShop(onEnd: (end: () => void) => void = onTestFinished): Promise<Shop> {
  const operations = readOperations(schema, folderOf({ 'shop.graphql': DOCUMENTS }, onEnd));
  const [errors, answers]: [Shop['errors'], Shop['answers']] = [[], []];
  const app = await publicServer({
    operations,
    authenticate,
    contextOf: (context) => context as never,
    publicUrl: 'http://localhost:3000',
    newRequestId: () => `req_${++requests}`,
    onError: (line) => errors.push(line),
    onAnswer: (line) => answers.push(line),
  });
  onEnd(() => app.close());
  return { app, operations, errors, answers };
}
