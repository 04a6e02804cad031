/** Refreshes, lists and ends sessions. */
import type { Session } from '../../entities/accounts/credential.ts';
import { shownUse } from '../../resolvers/accounts/auth/credential.ts';
import { type Refreshed, refresh } from '../../resolvers/accounts/auth/refresh.ts';
import type { TokenPair } from '../../resolvers/accounts/auth/session.ts';
import { listSessions, revokeSession } from '../../resolvers/accounts/auth/sessions.ts';
import { builder, inputType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

export const TokenPairType = objectType<TokenPair>(
  'TokenPair',
  'An access token and the refresh token that renews it. The service shows them once.',
  (t) => ({
    tokenId: t.exposeID('tokenId', { description: 'Identifies the session.' }),
    accessToken: t.exposeString('accessToken', { description: 'Send it as "Authorization: Bearer …".' }),
    tokenType: t.string({ description: 'Always Bearer.', resolve: () => 'Bearer' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
    refreshToken: t.exposeString('refreshToken', { description: 'Valid for one refresh.' }),
    refreshExpiresIn: t.exposeInt('refreshExpiresIn', { description: 'Seconds until the refresh token expires.' }),
    scope: t.exposeString('scope', { description: 'The scope of the tokens.' }),
  }),
);

const RefreshedType = objectType<Refreshed>('RefreshedTokens', 'The new pair of tokens.', (t) => ({
  tokens: t.expose('tokens', { type: TokenPairType }),
}));

const SessionType = objectType<Session>(
  'Session',
  'An access token and its refresh token, without the tokens themselves.',
  (t) => ({
    tokenId: t.exposeID('id', { description: 'Identifies the session.' }),
    scope: t.exposeString('scope', { description: 'The scope of the tokens.' }),
    source: t.exposeString('source', { description: 'register, login, or oauth: with the id of the client.' }),
    userAgent: t.exposeString('userAgent', {
      nullable: true,
      description: 'The User-Agent header of the login, up to 200 characters.',
    }),
    current: t.boolean({
      description: 'Whether this request uses the session.',
      resolve: ({ id }, _, { viewer }) => viewer?.credentialId === id,
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    lastUsedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'The time of the last use, with the precision of a minute.',
      resolve: shownUse,
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'When the access token expires. The refresh token may live longer.',
    }),
  }),
);
const SessionPage = pageOf('Session', SessionType);

const RevokedSession = objectType<{ tokenId: string }>('RevokedSession', 'An ended session.', (t) => ({
  tokenId: t.exposeID('tokenId', { description: 'The ended session.' }),
  revoked: t.boolean({ description: 'Always true.', resolve: () => true }),
}));

const RefreshTokensInput = inputType('RefreshTokensInput', (t) => ({
  refreshToken: t.field({
    type: 'Token',
    required: true,
    description: 'The refresh token, unused.',
  }),
}));

builder.queryFields((t) => ({
  sessions: t.field({
    type: SessionPage,
    scope: 'full',
    description: 'The open sessions of the account, newest first.',
    args: pageArgs(),
    resolve: (_, page, context) => listSessions(context, page),
  }),
}));

builder.mutationFields((t) => ({
  refreshTokens: t.field({
    type: RefreshedType,
    scope: 'public',
    errors: ['refresh_token_reused'],
    creates: 'tokens',
    description: 'Replaces a pair of tokens by a new one. The old access token stops working.',
    args: { input: t.arg({ type: RefreshTokensInput, required: true }) },
    resolve: (_, { input }, context) => refresh(context, input.refreshToken),
  }),
  revokeSession: t.field({
    type: RevokedSession,
    scope: 'full',
    whileSuspended: true,
    description:
      'Ends a session and its refresh token at once. Only a login ends a login, and none that is newer than itself.',
    args: { tokenId: t.arg({ type: 'ID', required: true, description: 'The session to end.' }) },
    resolve: (_, { tokenId }, context) => revokeSession(context, tokenId),
  }),
}));
