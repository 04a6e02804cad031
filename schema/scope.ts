/**
 * Denies by default. The schema does not build if a root field states no scope, and a caller without the scope is
 * refused. Suspended accounts are refused mutations, except those with `whileSuspended`. Operators need the right of a field,
 * too. The schema also hands the limits of a credential on, where a field `creates` something.
 */
import SchemaBuilder, {
  BasePlugin,
  type FieldNullability,
  type InputFieldMap,
  type InputShapeFromFields,
  type PothosOutputFieldConfig,
  type SchemaTypes,
  type TypeParam,
} from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import type { RequiredScope } from '../entities/accounts/credential.ts';
import type { ErrorCode } from '../entities/errors.ts';
import type { OperatorRight } from '../entities/operator.ts';
import { requireStanding } from '../resolvers/accounts/auth/credential-end.ts';
import { type Created, limitsOfCreator } from '../resolvers/accounts/auth/inherited-limits.ts';
import { requireActive, requireRight, requireScope } from '../resolvers/accounts/auth/scope.ts';
import { requireStepUp } from '../resolvers/accounts/auth/step-up.ts';
import type { Context } from '../resolvers/context.ts';
import { unavailable } from '../resolvers/errors.ts';
import { atTurnOfAnswer } from '../resolvers/large-answers.ts';

/* biome-ignore-start lint/correctness/noUnusedVariables: the extended declarations have these parameters */
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
      /** The right that an operator needs. Default: `read`. */
      right?: OperatorRight;
      /** The errors that a customer can get from this field, beside those of its form and its credential. */
      errors?: readonly ErrorCode[];
    }
    export interface MutationFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveReturnShape,
    > {
      scope: RequiredScope;
      /** The right that an operator needs. A mutation with the scope `operator` must state it. Others have that of the scope. */
      right?: OperatorRight;
      /** A suspended account may call it too, because it only ends something, or keeps a thief out. */
      whileSuspended?: boolean;
      /** A login may call it although its account has no calls left. Default: whether suspended accounts may call it. */
      urgent?: boolean;
      /**
       * Something new by which a caller acts. Its resolver gets the limits that the caller's credential hands on. The
       * caller proves the second factor again by `input.totpCode`, unless the login is recent.
       */
      creates?: Created;
      /** The errors that a customer can get from this field, beside those of its form and its credential. */
      errors?: readonly ErrorCode[];
      /**
       * Calls to the outside, with the refusals that they find. A request may wait for them only before its first change,
       * and the code of the second factor is one.
       */
      outside?: (args: InputShapeFromFields<Args>, context: Context) => Promise<unknown>;
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
type Outside = (args: object, context: Context) => Promise<unknown>;
/** The scope of the credential, and the right of an operator. */
interface Needs {
  scope: RequiredScope;
  right: OperatorRight;
  /** Suspended accounts are refused. */
  activeOnly?: boolean;
  /** An operator may have ended since the request began, so each mutation asks again. */
  isMutation?: boolean;
}
const ROOTS: ReadonlySet<string> = new Set(['Query', 'Mutation', 'Subscription']);

class ScopePlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onOutputFieldConfig(field: PothosOutputFieldConfig<Types>) {
    if (!ROOTS.has(field.kind)) return field;
    const scope = scopeOf(field.pothosOptions);
    if (!scope) throw new Error(`${field.parentType}.${field.name}: a root field must state its scope, or 'public'.`);
    const right = rightOf(field.kind, field.pothosOptions);
    if (!right) throw new Error(`${field.parentType}.${field.name}: a mutation of operators must state its right.`);
    return {
      ...field,
      extensions: {
        ...field.extensions,
        scope,
        right,
        activeOnly: isActiveOnly(field.kind, field.pothosOptions),
        urgent: isUrgent(field.kind, field.pothosOptions),
        creates: createdBy(field.pothosOptions),
        errors: errorsOf(field.pothosOptions),
      },
    };
  }
  override wrapResolve(resolver: Resolver, { kind, pothosOptions }: PothosOutputFieldConfig<Types>): Resolver {
    if (!ROOTS.has(kind)) return resolver;
    const created = createdBy(pothosOptions);
    const inner = created ? creating(resolver, created, outsideOf(pothosOptions)) : resolver;
    const isMutation = kind === 'Mutation';
    const answering = kind === 'Query' ? atItsTurn(inner) : inner;
    const needs = { scope: scopeOf(pothosOptions)!, right: rightOf(kind, pothosOptions)!, isMutation };
    return audited(guarded(answering, { ...needs, activeOnly: isActiveOnly(kind, pothosOptions) }), isMutation);
  }
  override wrapSubscribe(subscriber: Resolver | undefined, { kind, pothosOptions }: PothosOutputFieldConfig<Types>) {
    if (!subscriber || !ROOTS.has(kind)) return subscriber;
    return guarded(subscriber, { scope: scopeOf(pothosOptions)!, right: rightOf(kind, pothosOptions)! });
  }
}

/** Whether a field refuses suspended accounts. Public mutations accept every caller. */
const isActiveOnly = (kind: string, options: object) =>
  kind === 'Mutation' && scopeOf(options) !== 'public' && !(options as { whileSuspended?: boolean }).whileSuspended;
/** Whether a login may call a field beside the rate limit of its account. */
const isUrgent = (kind: string, options: object) =>
  kind === 'Mutation' && ((options as { urgent?: boolean }).urgent ?? !isActiveOnly(kind, options));
const scopeOf = (options: object) => (options as { scope?: RequiredScope }).scope;
/** The right that a field needs of an operator. Undefined: the field must state it. */
const rightOf = (kind: string, options: object): OperatorRight | undefined =>
  (options as { right?: OperatorRight }).right ?? (kind === 'Mutation' ? RIGHT_OF_SCOPE[scopeOf(options)!] : 'read');
/** The right for a mutation of customers, which an operator may call too. */
const RIGHT_OF_SCOPE: Partial<Record<RequiredScope, OperatorRight>> = {
  ...{ public: 'read', read: 'read', servers: 'support', billing: 'billing', full: 'owner' },
};
const createdBy = (options: object) => (options as { creates?: Created }).creates;
const errorsOf = (options: object) => (options as { errors?: readonly ErrorCode[] }).errors ?? [];
const outsideOf = (options: object) => (options as { outside?: Outside }).outside ?? (async () => {});

const guarded =
  (resolver: Resolver, { scope, right, activeOnly = false, isMutation = false }: Needs): Resolver =>
  (parent, args, context, info) => {
    const { viewer, signal, db } = context as Context;
    requireScope(viewer, scope);
    requireRight(viewer, right);
    if (activeOnly) requireActive(viewer);
    // A caller who has gone gets no answer.
    if (signal.aborted) throw unavailable();
    const answer = () => resolver(parent, args, context, info);
    return isMutation && viewer?.kind === 'operator' ? requireStanding(db, viewer).then(answer) : answer();
  };

/** Hands the limits of the caller's credential to the resolver, and demands the second factor. */
const creating =
  (resolver: Resolver, created: Created, outside: Outside): Resolver =>
  async (parent, args, context, info) => {
    const caller = context as Context;
    if (created === 'tokens') return resolver(parent, args, context, info);
    const inherited = limitsOfCreator(caller.viewer, created);
    const code = (args as { input?: { totpCode?: string | null } | null }).input?.totpCode;
    await requireStepUp(caller, code, () => outside(args, caller));
    return resolver(parent, args, { ...caller, inherited }, info);
  };
/** Lets a large answer wait for its turn. The operator waits for none. */
const atItsTurn =
  (resolver: Resolver): Resolver =>
  (parent, args, context, info) => {
    const caller = context as Context;
    const answer = () => resolver(parent, args, context, info);
    return caller.viewer?.kind === 'operator' ? answer() : atTurnOfAnswer(caller, info.fieldName, answer);
  };
/** Hands the field to the audit log, if the facade audits fields. */
const audited =
  (resolver: Resolver, isMutation: boolean): Resolver =>
  (parent, args, context, info) => {
    const caller = context as Context;
    const answer = () => resolver(parent, args, context, info);
    return caller.audit ? caller.audit.field(caller, { name: info.fieldName, isMutation, args }, answer) : answer();
  };

SchemaBuilder.registerPlugin('scope', ScopePlugin);
