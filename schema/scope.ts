/** Deny by default: a root field that states no scope does not build, and one that states it is refused without it. */
import SchemaBuilder, {
  BasePlugin,
  type FieldNullability,
  type InputFieldMap,
  type PothosOutputFieldConfig,
  type SchemaTypes,
  type TypeParam,
} from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import type { RequiredScope } from '../entities/credential.ts';
import { requireScope } from '../resolvers/auth/scope.ts';
import type { Context } from '../resolvers/context.ts';

/* biome-ignore-start lint/correctness/noUnusedVariables: the parameters are those of the declarations that are extended */
declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      scope: ScopePlugin<Types>;
    }
    export interface QueryFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveReturnShape,
    > {
      scope: RequiredScope;
    }
    export interface MutationFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveReturnShape,
    > {
      scope: RequiredScope;
    }
    export interface SubscriptionFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveShape,
      ResolveReturnShape,
    > {
      scope: RequiredScope;
    }
  }
}
/* biome-ignore-end lint/correctness/noUnusedVariables: as above */

type Resolver = GraphQLFieldResolver<unknown, object>;
const ROOTS: ReadonlySet<string> = new Set(['Query', 'Mutation', 'Subscription']);

class ScopePlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onOutputFieldConfig(field: PothosOutputFieldConfig<Types>) {
    if (!ROOTS.has(field.kind)) return field;
    const scope = scopeOf(field.pothosOptions);
    if (!scope) throw new Error(`${field.parentType}.${field.name}: a root field must state its scope, or 'public'.`);
    return { ...field, extensions: { ...field.extensions, scope } };
  }
  override wrapResolve(resolver: Resolver, { kind, pothosOptions }: PothosOutputFieldConfig<Types>): Resolver {
    return ROOTS.has(kind) ? guarded(resolver, scopeOf(pothosOptions)!) : resolver;
  }
  override wrapSubscribe(subscriber: Resolver | undefined, { kind, pothosOptions }: PothosOutputFieldConfig<Types>) {
    return subscriber && ROOTS.has(kind) ? guarded(subscriber, scopeOf(pothosOptions)!) : subscriber;
  }
}

const scopeOf = (options: object) => (options as { scope?: RequiredScope }).scope;

const guarded =
  (resolver: Resolver, scope: RequiredScope): Resolver =>
  (parent, args, context, info) => {
    requireScope((context as Context).viewer, scope);
    return resolver(parent, args, context, info);
  };

SchemaBuilder.registerPlugin('scope', ScopePlugin);
