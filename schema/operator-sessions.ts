/** How operators sign in, and their sessions. The page `/sign-in` of the internal listener sends the public mutations. */
import {
  type Accepted,
  acceptInvitation,
  endOperatorSession,
  listOperatorSessions,
  type OperatorSession,
  openInvitation,
  renewOperatorRecoveryCodes,
  type SignedIn,
  signIn,
  type TotpSetup,
} from '../resolvers/operator-sessions.ts';
import { RecoveryCodes } from './accounts/totp.ts';
import { builder, objectType } from './builder.ts';
import { OperatorType } from './operators.ts';

const SignedInType = objectType<SignedIn | Accepted>('SignedIn', 'An operator with a new session.', (t) => ({
  operator: t.expose('operator', { type: OperatorType }),
  token: t.exposeString('token', { description: 'The token of the session. The service shows it only here.' }),
  expiresAt: t.expose('expiresAt', {
    type: 'DateTime',
    description: 'When the session ends. It ends earlier after 30 minutes without a request.',
  }),
  recoveryCodes: t.stringList({
    description: 'After an invitation: ten codes, each valid once in place of a code. The service shows them once.',
    resolve: (signedIn) => ('recoveryCodes' in signedIn ? signedIn.recoveryCodes : []),
  }),
}));
const OpenInvitationType = objectType<TotpSetup & { name: string }>(
  'OpenInvitation',
  'The seed of a second factor, for an invited operator.',
  (t) => ({
    name: t.exposeString('name', { description: 'The name to sign in with.' }),
    secret: t.exposeString('secret', { description: 'The seed in base32, for an authenticator.' }),
    provisioningUri: t.exposeString('provisioningUri', { description: 'The seed as authenticators read it.' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'The seconds in which a code must confirm the seed.' }),
  }),
);
const OperatorSessionType = objectType<OperatorSession & { name: string }>(
  'OperatorSession',
  'An open session of an operator.',
  (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name', { description: 'The name of the operator.' }),
    isCurrent: t.boolean({
      description: 'Whether the request came in this session.',
      resolve: ({ id }, _, { viewer }) => viewer?.session === id,
    }),
    userAgent: t.exposeString('userAgent', { nullable: true }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    usedAt: t.expose('usedAt', { type: 'DateTime', description: 'The last request, to a minute.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime' }),
  }),
);

builder.queryFields((t) => ({
  operatorSessions: t.field({
    type: [OperatorSessionType],
    scope: 'operator',
    description: 'The open sessions of the operator who asks. An owner sees those of all operators.',
    resolve: (_, __, context) => listOperatorSessions(context),
  }),
}));

const required = <T extends string>(type: T, description: string) => ({ type, required: true, description }) as const;
const CODE = required('Line', 'The code of the invitation.');
const TOTP = required('TotpCode', 'A code of the authenticator.');
const SECOND_FACTOR = required('TotpCode', 'A code of the authenticator, or a recovery code.');
builder.mutationFields((t) => ({
  signIn: t.field({
    type: SignedInType,
    scope: 'public',
    creates: 'tokens',
    description: 'Signs an operator in.',
    args: {
      name: t.arg(required('OperatorName', 'The name of the operator.')),
      password: t.arg(required('CurrentPassword', 'The password of the operator.')),
      totpCode: t.arg(SECOND_FACTOR),
    },
    resolve: (_, given, context) => signIn(context, given),
  }),
  openInvitation: t.field({
    type: OpenInvitationType,
    scope: 'public',
    description:
      'Shows the seed of the second factor of an invited operator. It stays the same until the invitation ends.',
    args: { code: t.arg(CODE) },
    resolve: (_, { code }, context) => openInvitation(context, code),
  }),
  acceptInvitation: t.field({
    type: SignedInType,
    scope: 'public',
    creates: 'tokens',
    description: 'Takes the password and the second factor of an invited operator, and signs them in.',
    args: { code: t.arg(CODE), password: t.arg(required('Password', 'The new password.')), totpCode: t.arg(TOTP) },
    resolve: (_, given, context) => acceptInvitation(context, given),
  }),
  renewOperatorRecoveryCodes: t.field({
    type: RecoveryCodes,
    scope: 'operator',
    right: 'read',
    description: 'Replaces your recovery codes by ten new ones. Each signs in once in place of a code.',
    args: { totpCode: t.arg(SECOND_FACTOR) },
    resolve: (_, { totpCode }, context) => renewOperatorRecoveryCodes(context, totpCode),
  }),
  endOperatorSession: t.field({
    type: 'Boolean',
    scope: 'operator',
    right: 'read',
    description: 'Ends a session at once, by default your own one. An owner ends those of others, too.',
    args: { id: t.arg({ type: 'ID', description: 'The session. Default: the one of this request.' }) },
    resolve: async (_, { id }, context) => {
      await endOperatorSession(context, id ?? null);
      return true;
    },
  }),
}));
