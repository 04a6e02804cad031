import SchemaBuilder from '@pothos/core';
import { getNamedType, isInputObjectType, isObjectType, lexicographicSortSchema, printSchema } from 'graphql';
import { describe, expect, it } from 'vitest';
import { schema } from '../schema/index.ts';
import '../schema/scope.ts';

const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith('__'));

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
