/**
 * Deny by default: a root field that states no scope does not build, and one that states it is refused without it.
 * Mutations are refused to suspended accounts, unless they say otherwise.
 */
import SchemaBuilder, {
  BasePlugin,
  type FieldNullability,
  type InputFieldMap,
  type PothosOutputFieldConfig,
  type SchemaTypes,
  type TypeParam,
} from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import type { RequiredScope } from '../entities/accounts/credential.ts';
import { requireActive, requireScope } from '../resolvers/accounts/auth/scope.ts';
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
      /** A suspended account may call it, too: for what only ends something. */
      whileSuspended?: boolean;
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
    return {
      ...field,
      extensions: { ...field.extensions, scope, activeOnly: isActiveOnly(field.kind, field.pothosOptions) },
    };
  }
  override wrapResolve(resolver: Resolver, { kind, pothosOptions }: PothosOutputFieldConfig<Types>): Resolver {
    return ROOTS.has(kind) ? guarded(resolver, scopeOf(pothosOptions)!, isActiveOnly(kind, pothosOptions)) : resolver;
  }
  override wrapSubscribe(subscriber: Resolver | undefined, { kind, pothosOptions }: PothosOutputFieldConfig<Types>) {
    return subscriber && ROOTS.has(kind) ? guarded(subscriber, scopeOf(pothosOptions)!) : subscriber;
  }
}

/** A suspended account may read, and end what it has; public mutations do not look at who asks. */
const isActiveOnly = (kind: string, options: object) =>
  kind === 'Mutation' && scopeOf(options) !== 'public' && !(options as { whileSuspended?: boolean }).whileSuspended;
const scopeOf = (options: object) => (options as { scope?: RequiredScope }).scope;

const guarded =
  (resolver: Resolver, scope: RequiredScope, activeOnly = false): Resolver =>
  (parent, args, context, info) => {
    const { viewer } = context as Context;
    requireScope(viewer, scope);
    if (activeOnly) requireActive(viewer);
    return resolver(parent, args, context, info);
  };

SchemaBuilder.registerPlugin('scope', ScopePlugin);
