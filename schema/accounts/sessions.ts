/** Sessions: refreshing, listing and ending them. */
import type { Session } from '../../entities/accounts/credential.ts';
import { type Refreshed, refresh } from '../../resolvers/accounts/auth/refresh.ts';
import type { TokenPair } from '../../resolvers/accounts/auth/session.ts';
import { listSessions, revokeSession } from '../../resolvers/accounts/auth/sessions.ts';
import { builder } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

export const TokenPairType = builder.objectRef<TokenPair>('TokenPair').implement({
  description: 'An access token and the refresh token that renews it. Shown once.',
  fields: (t) => ({
    tokenId: t.exposeID('tokenId', { description: 'Identifies the session.' }),
    accessToken: t.exposeString('accessToken', { description: 'Send it as "Authorization: Bearer …".' }),
    tokenType: t.string({ description: 'Always Bearer.', resolve: () => 'Bearer' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
    refreshToken: t.exposeString('refreshToken', { description: 'Good for one refresh.' }),
    refreshExpiresIn: t.exposeInt('refreshExpiresIn', { description: 'Seconds until the refresh token expires.' }),
    scope: t.exposeString('scope', { description: 'What the tokens may do.' }),
  }),
});

const RefreshedType = builder.objectRef<Refreshed>('RefreshedTokens').implement({
  description: 'The pair that replaces another.',
  fields: (t) => ({ tokens: t.expose('tokens', { type: TokenPairType }) }),
});

const SessionType = builder.objectRef<Session>('Session').implement({
  description: 'An access token and its refresh token, without the tokens themselves.',
  fields: (t) => ({
    tokenId: t.exposeID('id', { description: 'Identifies the session.' }),
    scope: t.exposeString('scope', { description: 'What the tokens may do.' }),
    source: t.exposeString('source', { description: 'register, login, or oauth: and the id of the client.' }),
    userAgent: t.exposeString('userAgent', {
      nullable: true,
      description: 'What the client that opened it called itself, up to 200 characters.',
    }),
    current: t.boolean({
      description: 'Whether this request was made with it.',
      resolve: ({ id }, _, { viewer }) => viewer?.credentialId === id,
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'With the precision of a minute.',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'When the access token expires; the refresh token may live on.',
    }),
  }),
});
const SessionPage = pageOf('Session', SessionType);

const RevokedSession = builder.objectRef<{ tokenId: string }>('RevokedSession').implement({
  description: 'A session that was ended.',
  fields: (t) => ({
    tokenId: t.exposeID('tokenId'),
    revoked: t.boolean({ description: 'Always true.', resolve: () => true }),
  }),
});

const RefreshTokensInput = builder.inputType('RefreshTokensInput', {
  fields: (t) => ({
    refreshToken: t.field({
      type: 'Token',
      required: true,
      description: 'It is spent by this: used again, it ends the whole session.',
    }),
  }),
});

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
    description: 'Replaces a pair of tokens by a fresh one. The old access token dies.',
    args: { input: t.arg({ type: RefreshTokensInput, required: true }) },
    resolve: (_, { input }, context) => refresh(context, input.refreshToken),
  }),
  revokeSession: t.field({
    type: RevokedSession,
    scope: 'full',
    whileSuspended: true,
    description: 'Ends a session at once; its refresh token dies, too.',
    args: { tokenId: t.arg({ type: 'ID', required: true, description: 'The session to end.' }) },
    resolve: (_, { tokenId }, context) => revokeSession(context, tokenId),
  }),
}));
