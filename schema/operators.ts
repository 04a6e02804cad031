/** The named operators. */
import type { GraphQLSchema } from 'graphql';
import type { Operator, OperatorRight } from '../entities/operator.ts';
import { mayCall } from '../resolvers/accounts/auth/scope.ts';
import type { Viewer } from '../resolvers/context.ts';
import {
  addOperator,
  endOperator,
  type Invitation,
  inviteOperator,
  listOperators,
  OPERATOR_ROLES,
  OPERATOR_STATES,
  type OperatorWithToken,
  renewInvitation,
  renewOperatorToken,
  setOperatorRole,
} from '../resolvers/operators.ts';
import { builder, enumType, inputType, objectType } from './builder.ts';

const OperatorRole = enumType(
  'OperatorRole',
  'Owners do everything. BILLING moves money, SUPPORT cares for customers and servers. All roles read.',
  OPERATOR_ROLES,
);
const OperatorState = enumType(
  'OperatorState',
  'INVITED: the code of the invitation is the only way in. ACTIVE: the operator signs in, or has a token.',
  OPERATOR_STATES,
);

export const OperatorType = objectType<Operator>(
  'Operator',
  'A named operator, without the token or the password.',
  (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name', { description: 'The name in the audit log.' }),
    role: t.expose('role', { type: OperatorRole }),
    state: t.expose('state', { type: OperatorState }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the token stops working. Null: the operator signs in.',
    }),
    invitationExpiresAt: t.expose('invitationExpiresAt', { type: 'DateTime', nullable: true }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    endedAt: t.expose('endedAt', { type: 'DateTime', nullable: true }),
  }),
);

const OperatorWithTokenType = objectType<OperatorWithToken>(
  'OperatorWithToken',
  'An operator with a new token.',
  (t) => ({
    operator: t.expose('operator', { type: OperatorType }),
    token: t.exposeString('token', { description: 'The token itself. The service shows it only here.' }),
  }),
);

const InvitationType = objectType<Invitation>('Invitation', 'An operator with the code of an invitation.', (t) => ({
  operator: t.expose('operator', { type: OperatorType }),
  code: t.exposeString('code', {
    description: 'The operator opens the console with it, once. The service shows it only here.',
  }),
}));

const InviteOperatorInput = inputType('InviteOperatorInput', (t) => ({
  name: t.field({ type: 'OperatorName', required: true, description: 'Unique among the operators.' }),
  role: t.field({ type: OperatorRole, required: true }),
}));
const AddOperatorInput = inputType('AddOperatorInput', (t) => ({
  name: t.field({ type: 'OperatorName', required: true, description: 'Unique among the operators.' }),
  role: t.field({ type: OperatorRole, required: true }),
  days: t.field({ type: 'TokenDays', defaultValue: 90, required: true }),
}));

interface CurrentOperator {
  name: string;
  role: Operator['role'];
  /** The names of the root fields that the role may call. */
  fields: string[];
}
const CurrentOperatorType = objectType<CurrentOperator>('CurrentOperator', 'The operator who asks.', (t) => ({
  name: t.exposeString('name'),
  role: t.expose('role', { type: OperatorRole }),
  fields: t.exposeStringList('fields', { description: 'The root fields that the role may call.' }),
}));

/** The root fields of the schema that a role may call. */
function fieldsFor(role: Operator['role'], schema: GraphQLSchema): string[] {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const fields = roots.flatMap((root) => Object.values(root?.getFields() ?? {}));
  return fields.filter(({ extensions }) => mayCall(role, extensions.right as OperatorRight)).map(({ name }) => name);
}

builder.queryFields((t) => ({
  currentOperator: t.field({
    type: CurrentOperatorType,
    scope: 'operator',
    description: 'The operator who asks, with the fields that the role may call.',
    resolve: (_, __, { viewer }, { schema }) => {
      const { name, role } = viewer as Viewer & { role: Operator['role'] };
      return { name: name!, role, fields: fieldsFor(role, schema) };
    },
  }),
  operators: t.field({
    type: [OperatorType],
    scope: 'operator',
    description: 'The named operators, newest first.',
    args: { state: t.arg({ type: OperatorState, description: 'Only operators in this state.' }) },
    resolve: (_, { state }, context) => listOperators(context, state ?? null),
  }),
}));

const id = { type: 'ID', required: true, description: 'The operator.' } as const;
builder.mutationFields((t) => ({
  inviteOperator: t.field({
    type: InvitationType,
    scope: 'operator',
    right: 'owner',
    description:
      'Invites a person, who chooses a password and a second factor by the code. The code expires in 3 days.',
    args: { input: t.arg({ type: InviteOperatorInput, required: true }) },
    resolve: (_, { input }, context) => inviteOperator(context, input),
  }),
  renewInvitation: t.field({
    type: InvitationType,
    scope: 'operator',
    right: 'owner',
    description:
      'Ends the password, second factor, token, sessions and webhooks of an operator, and invites them again.',
    args: { id: t.arg(id) },
    resolve: (_, args, context) => renewInvitation(context, args.id),
  }),
  addOperator: t.field({
    type: OperatorWithTokenType,
    scope: 'operator',
    right: 'owner',
    description: 'Adds an operator with a token, which expires. It is for a tool: invite a person.',
    args: { input: t.arg({ type: AddOperatorInput, required: true }) },
    resolve: (_, { input }, context) => addOperator(context, input),
  }),
  setOperatorRole: t.field({
    type: OperatorType,
    scope: 'operator',
    right: 'owner',
    description: 'Gives an operator another role at once. Sessions and running subscriptions of the operator end.',
    args: {
      id: t.arg(id),
      role: t.arg({ type: OperatorRole, required: true, description: 'The new role.' }),
      seen: t.arg({
        type: OperatorRole,
        description: 'The role that you saw. The service refuses the change of another one.',
      }),
    },
    resolve: (_, args, context) => setOperatorRole(context, args.id, args.role, args.seen),
  }),
  renewOperatorToken: t.field({
    type: OperatorWithTokenType,
    scope: 'operator',
    right: 'owner',
    description: 'Replaces the token of an operator, and ends the webhooks, at once.',
    args: {
      id: t.arg(id),
      days: t.arg({ type: 'TokenDays', defaultValue: 90, required: true, description: 'The life of the new token.' }),
    },
    resolve: (_, args, context) => renewOperatorToken(context, args.id, args.days),
  }),
  endOperator: t.field({
    type: OperatorType,
    scope: 'operator',
    right: 'owner',
    description: 'Ends an operator with the token and the sessions at once. The audit log keeps the name.',
    args: { id: t.arg(id) },
    resolve: (_, args, context) => endOperator(context, args.id),
  }),
}));
