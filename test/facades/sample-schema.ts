/** A small schema with all kinds of types, for tests of the facades. */
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
import type { Caller } from '../../facades/compile/run.ts';
import { ApiError, type RequiredScope, schema as realSchema } from '../../schema/index.ts';

const scalar = (name: string) => realSchema.getType(name) as GraphQLScalarType;
const nonNull = <T extends GraphQLOutputType>(type: T) => new GraphQLNonNull(type as never) as unknown as T;
const listOf = <T extends GraphQLOutputType>(type: T) => nonNull(new GraphQLList(nonNull(type)));

const Color = new GraphQLEnumType({ name: 'Color', description: 'A color.', values: { RED: {}, DARK_BLUE: {} } });
const Part = new GraphQLObjectType({
  name: 'Part',
  description: 'A part of a thing.',
  fields: { name: { type: nonNull(GraphQLString) }, color: { type: Color }, weight: { type: nonNull(GraphQLFloat) } },
});
const Thing = new GraphQLObjectType({
  name: 'Thing',
  description: 'A thing.',
  fields: {
    thingId: { type: nonNull(GraphQLID), description: 'Identifies the thing.' },
    color: { type: nonNull(Color) },
    otherColors: { type: listOf(Color) },
    labels: { type: nonNull(scalar('JSON')) },
    priceUsd: { type: nonNull(scalar('Usd')) },
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
    hasMore: { type: nonNull(GraphQLBoolean) },
  },
});
const Ordered = new GraphQLObjectType({
  name: 'OrderedThing',
  description: 'An ordered thing.',
  fields: { thing: { type: nonNull(Thing) }, part: { type: Part }, plaintext: { type: nonNull(GraphQLString) } },
});
const Echo = new GraphQLObjectType({
  name: 'Echo',
  description: 'The arguments and the caller of a request.',
  fields: { args: { type: nonNull(scalar('JSON')) }, caller: { type: scalar('JSON') } },
});

const Inner = new GraphQLInputObjectType({
  name: 'InnerInput',
  fields: {
    innerColor: { type: Color },
    count: { type: new GraphQLNonNull(GraphQLInt), description: 'The number of things.' },
  },
});
const OrderInput = new GraphQLInputObjectType({
  name: 'OrderThingInput',
  description: 'The order of a thing.',
  fields: {
    serviceCode: { type: new GraphQLNonNull(scalar('Code')), description: 'The code of a tier.' },
    amountUsd: { type: scalar('TopUpAmount') },
    password: { type: scalar('Password') },
    email: { type: scalar('Email') },
    hostname: { type: scalar('Hostname') },
    madeAt: { type: scalar('DateTime'), description: 'When somebody made the thing.' },
    region: { type: scalar('Code') },
    labels: { type: scalar('Labels') },
    anything: { type: scalar('JSON') },
    color: { type: Color, description: 'The color of the thing.' },
    otherColors: { type: new GraphQLList(new GraphQLNonNull(Color)) },
    autoRenew: { type: new GraphQLNonNull(GraphQLBoolean), defaultValue: true },
    inner: { type: Inner },
    freeText: { type: GraphQLString },
    float: { type: GraphQLFloat },
  },
});

const thing = (thingId: string, more: object = {}) => ({
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

/** The calls of the field `slow`. A call ends when the test finishes it, or when its caller disconnects. */
export const slow = { running: 0, aborted: 0, finish: () => {} };

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
        type: nonNull(ThingPage),
        args: {
          limit: {
            type: new GraphQLNonNull(scalar('PageLimit')),
            defaultValue: 50,
            description: 'The number of things.',
          },
          color: { type: new GraphQLList(new GraphQLNonNull(Color)), description: 'Only things of these colors.' },
          heavy: { type: GraphQLBoolean, description: 'Only heavy things.' },
        },
        resolve: (_, args) => ({
          data: [thing('one', { labels: args })],
          nextCursor: null,
          hasMore: false,
        }),
      }),
      something: field('public', {
        type: nonNull(Something),
        args: id,
        resolve: (_, { thingId }) => (thingId === 'part' ? { name: 'lid', color: 'RED', weight: 2 } : thing(thingId)),
      }),
      parts: field('public', { type: listOf(Part), resolve: () => [{ name: 'lid', color: null, weight: 1 }] }),
      colors: field('public', { type: listOf(Color), resolve: () => ['RED', 'DARK_BLUE'] }),
      number: field('public', { type: nonNull(GraphQLInt), resolve: () => 7 }),
      broken: field('public', {
        type: nonNull(Part),
        resolve: () => {
          throw new TypeError('The secret "hunter2" was: hunter2');
        },
      }),
      refused: field('public', {
        type: nonNull(Part),
        args: { code: { type: new GraphQLNonNull(GraphQLString), description: 'The code of the error.' } },
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
        type: nonNull(Part),
        resolve: (_, __, { signal }) =>
          new Promise((resolve) => {
            const end = (name: string) => {
              slow.running--;
              resolve({ name, weight: 1 });
            };
            slow.running++;
            slow.finish = () => end('late');
            signal.addEventListener('abort', () => {
              slow.aborted++;
              end('gone');
            });
          }),
      }),
    },
  }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      orderThing: field('servers', {
        type: nonNull(Ordered),
        args: { input: { type: new GraphQLNonNull(OrderInput) } },
        resolve: () => ({ thing: thing('new'), part: null, plaintext: 'shown once' }),
      }),
      echo: field('public', {
        type: nonNull(Echo),
        args: {
          input: { type: OrderInput },
          mode: { type: Color, description: 'The mode.' },
          key: { type: scalar('KeyName'), description: 'The key.' },
        },
        resolve: (_, args, context) => ({ args, caller: caller(context) }),
      }),
      deleteThing: field('full', { type: nonNull(Thing), args: id, resolve: (_, { thingId }) => thing(thingId) }),
      changeThing: field('full', {
        type: nonNull(Thing),
        args: { ...id, input: { type: new GraphQLNonNull(Inner) } },
        resolve: (_, { thingId }) => thing(thingId),
      }),
    },
  }),
});
