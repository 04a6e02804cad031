import SchemaBuilder from '@pothos/core';
import {
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
  isObjectType,
  isScalarType,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { schema } from '../schema/index.ts';
import '../schema/scope.ts';

const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith('__'));

const LISTS = [
  'codes',
  'components',
  'contacts',
  'disks',
  'disks',
  'disks',
  'endpoints',
  'endpoints',
  'endpoints',
  'grantTypes',
  'nameservers',
  'nameservers',
  'redirectUris',
  'resource',
  'responseTypes',
  'seen',
  'skills',
  'tiers',
];

interface Schema {
  type?: string;
  anyOf?: Schema[];
  maxLength?: number;
  maxItems?: number;
  maxProperties?: number;
  items?: Schema;
  pattern?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | false;
}

/** Whether a JSON Schema limits each text, each list and each object. */
function isBounded({ type, anyOf, items, properties, additionalProperties, ...limits }: Schema): boolean {
  if (type === undefined) return Boolean(anyOf?.every(isBounded));
  if (type === 'string') return limits.maxLength !== undefined || /^\^\[[^\]]+\]\{\d+\}\$$/.test(limits.pattern ?? '');
  if (type === 'array') return limits.maxItems !== undefined && isBounded(items!);
  if (type !== 'object' || limits.maxProperties === 0) return true;
  if (additionalProperties === false) return Object.values(properties!).every(isBounded);
  return limits.maxProperties !== undefined && isBounded(additionalProperties!);
}

describe('The schema', () => {
  it('equals schema/schema.graphql', async () => {
    await expect(`${printSchema(lexicographicSortSchema(schema))}\n`).toMatchFileSnapshot('../schema/schema.graphql');
  });

  it('does not build if a root field states no scope', () => {
    for (const kind of ['Query', 'Mutation', 'Subscription'] as const) {
      const builder = new SchemaBuilder<{ Context: object }>({ plugins: ['scope'] });
      const open = { type: 'String', nullable: true, resolve: () => null, subscribe: () => null } as never;
      builder.queryType({
        fields: (t) => ({
          fine: t.string({ scope: 'public', nullable: true, resolve: () => null }),
          ...(kind === 'Query' && { oops: t.field(open) }),
        }),
      });
      if (kind === 'Mutation') builder.mutationType({ fields: (t) => ({ oops: t.field(open) }) });
      if (kind === 'Subscription') builder.subscriptionType({ fields: (t) => ({ oops: t.field(open) }) });
      expect(() => builder.toSchema()).toThrow(`${kind}.oops: a root field must state its scope`);
    }
  });

  it('states a scope for every root field', () => {
    const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap((type) =>
      Object.values(type!.getFields()),
    );
    expect(roots.length).toBeGreaterThan(20);
    for (const field of roots)
      expect(['public', 'read', 'servers', 'billing', 'full', 'operator']).toContain(field.extensions.scope);
  });

  it('limits every text and number of arguments and inputs by a scalar of its own', () => {
    const inputs = types.filter(isInputObjectType).flatMap((type) => Object.values(type.getFields()));
    const roots = types
      .filter(isObjectType)
      .flatMap((type) => Object.values(type.getFields()).flatMap(({ args }) => args));
    const plain = [...inputs, ...roots].filter(({ type }) =>
      ['String', 'Int', 'Float'].includes(getNamedType(type).name),
    );
    expect(plain.map(({ name }) => name)).toEqual([]);
  });

  it('bounds every text and every list that a mutation takes', () => {
    const mutations = Object.values(schema.getMutationType()!.getFields()).flatMap(({ args }) => args);
    const inputs = types.filter(isInputObjectType).flatMap((type) => Object.values(type.getFields()));
    const scalars = new Set([...mutations, ...inputs].map(({ type }) => getNamedType(type)).filter(isScalarType));
    const unbounded = [...scalars].filter(({ name, extensions }) => {
      const builtIn = ['ID', 'Boolean'].includes(name); // an ID of another length names nothing
      return !builtIn && !isBounded(extensions.jsonSchema as Schema);
    });
    expect(unbounded.map(({ name }) => name)).toEqual([]);
    const lists = [...mutations, ...inputs].filter(({ type }) => isListType(getNullableType(type)));
    // Resolvers count these entries, or store none. Only the operator sends codes, components, disks and nameservers.
    expect(lists.map(({ name }) => name).sort()).toEqual(LISTS);
  });

  it('describes every type, every root field and every argument', () => {
    const undescribed = types.filter(
      ({ description, name }) =>
        !description && !['String', 'Int', 'Float', 'Boolean', 'ID'].includes(name) && !name.endsWith('Input'),
    );
    expect(undescribed.map(({ name }) => name)).toEqual([]);
    const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap((type) =>
      Object.values(type!.getFields()),
    );
    expect(roots.filter(({ description }) => !description)).toEqual([]);
    expect(
      roots.flatMap(({ name, args }) =>
        args.filter((arg) => !arg.description && arg.name !== 'input').map((arg) => `${name}.${arg.name}`),
      ),
    ).toEqual([]);
  });
});
