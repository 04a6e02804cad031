/** OAuth 2.1 for machines: clients, the tokens that they get, and what tokens are good for. */
import { type Introspection, introspectOauthToken } from '../../resolvers/accounts/oauth/introspect.ts';
import { type RegisteredClient, registerOauthClient } from '../../resolvers/accounts/oauth/register.ts';
import { revokeOauthToken } from '../../resolvers/accounts/oauth/revoke.ts';
import { type IssuedToken, issueOauthToken } from '../../resolvers/accounts/oauth/token.ts';
import { builder } from '../builder.ts';

const OauthClientType = builder.objectRef<RegisteredClient>('OauthClient').implement({
  description: 'A new OAuth client (RFC 7591). The secret is shown here and never again.',
  fields: (t) => ({
    clientId: t.id({ description: 'Identifies the client.', resolve: ({ client }) => client.id }),
    clientSecret: t.exposeString('clientSecret', { description: 'Proves that it is the client. Keep it.' }),
    clientIdIssuedAt: t.field({ type: 'EpochSeconds', resolve: ({ client }) => client.createdAt }),
    clientSecretExpiresAt: t.int({ description: 'Always 0: never.', resolve: () => 0 }),
    scope: t.string({ description: 'The widest scope of its tokens.', resolve: ({ client }) => client.scope }),
    grantTypes: t.stringList({ resolve: ({ client }) => client.grantTypes }),
    responseTypes: t.stringList({ description: 'Always none.', resolve: () => [] }),
    tokenEndpointAuthMethod: t.string({
      description: 'As registered; client_secret_basic and client_secret_post both work.',
      resolve: ({ client }) => client.authMethod,
    }),
    redirectUris: t.stringList({ description: 'Kept and unused.', resolve: ({ client }) => client.redirectUris }),
    clientName: t.string({ nullable: true, resolve: ({ client }) => client.metadata.clientName }),
    clientUri: t.string({ nullable: true, resolve: ({ client }) => client.metadata.clientUri }),
    logoUri: t.string({ nullable: true, resolve: ({ client }) => client.metadata.logoUri }),
    contacts: t.stringList({ nullable: true, resolve: ({ client }) => client.metadata.contacts }),
    softwareId: t.string({ nullable: true, resolve: ({ client }) => client.metadata.softwareId }),
    softwareVersion: t.string({ nullable: true, resolve: ({ client }) => client.metadata.softwareVersion }),
  }),
});

const OauthTokenType = builder.objectRef<IssuedToken>('OauthToken').implement({
  description: 'An access token (RFC 6749). Shown once.',
  fields: (t) => ({
    accessToken: t.exposeString('accessToken', { description: 'Send it as "Authorization: Bearer …".' }),
    tokenType: t.string({ description: 'Always Bearer.', resolve: () => 'Bearer' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
    scope: t.exposeString('scope', { description: 'What the token may do.' }),
    refreshToken: t.exposeString('refreshToken', {
      nullable: true,
      description: 'Good for one refresh. Only for clients that registered the grant refresh_token.',
    }),
  }),
});

const IntrospectionType = builder.objectRef<Introspection>('TokenIntrospection').implement({
  description: 'What a token is good for (RFC 7662). Nothing but `active` is said of one that opens no door.',
  fields: (t) => ({
    active: t.exposeBoolean('active', { description: 'Whether it opens doors now.' }),
    scope: t.exposeString('scope', { nullable: true, description: 'What it may do.' }),
    clientId: t.exposeString('clientId', { nullable: true, description: 'The OAuth client that got it.' }),
    tokenType: t.exposeString('tokenType', { nullable: true, description: 'Bearer; refresh tokens have none.' }),
    exp: t.expose('exp', { type: 'EpochSeconds', nullable: true, description: 'When it expires.' }),
    iat: t.expose('iat', { type: 'EpochSeconds', nullable: true, description: 'When it was issued.' }),
    sub: t.exposeString('sub', { nullable: true, description: 'The account.' }),
    aud: t.exposeStringList('aud', { nullable: true, description: 'Where it can be used.' }),
    iss: t.exposeString('iss', { nullable: true, description: 'Who issued it.' }),
    jti: t.exposeString('jti', { nullable: true, description: 'Its id, which is no secret.' }),
  }),
});

const RegisterInput = builder.inputType('RegisterOauthClientInput', {
  description: 'Client metadata (RFC 7591). Unknown members are ignored.',
  fields: (t) => ({
    scope: t.field({
      type: 'OauthParameter',
      description: 'The widest scope of its tokens: read (if absent), servers, billing, full, separated by spaces.',
    }),
    grantTypes: t.field({
      type: ['OauthParameter'],
      description: 'client_credentials (if absent), and refresh_token.',
    }),
    responseTypes: t.field({ type: ['OauthParameter'], description: 'None: there is no authorization in a browser.' }),
    tokenEndpointAuthMethod: t.field({
      type: 'OauthParameter',
      description: 'client_secret_basic (if absent) or client_secret_post.',
    }),
    redirectUris: t.field({ type: ['ClientUri'], description: 'Kept and unused.' }),
    clientName: t.field({ type: 'ClientText' }),
    clientUri: t.field({ type: 'ClientUri' }),
    logoUri: t.field({ type: 'ClientUri' }),
    contacts: t.field({ type: ['ClientText'] }),
    softwareId: t.field({ type: 'ClientText' }),
    softwareVersion: t.field({ type: 'ClientText' }),
  }),
});

const CLIENT_ID = 'The client, unless HTTP Basic names it.';
const CLIENT_SECRET = 'Its secret, unless HTTP Basic has it.';
const TokenInput = builder.inputType('IssueOauthTokenInput', {
  description: 'A token request (RFC 6749). Unknown members are ignored.',
  fields: (t) => ({
    grantType: t.field({
      type: 'OauthParameter',
      required: true,
      description: 'client_credentials or refresh_token.',
    }),
    refreshToken: t.field({ type: 'OauthParameter', description: 'For the grant refresh_token. Good once.' }),
    scope: t.field({
      type: 'OauthParameter',
      description: 'A part of the registered scope; all of it if absent. A refresh keeps the scope.',
    }),
    resource: t.field({
      type: ['OauthParameter'],
      description: 'What the token is for (RFC 8707): the address of this service, or of its MCP endpoint.',
    }),
    clientId: t.field({ type: 'OauthParameter', description: CLIENT_ID }),
    clientSecret: t.field({ type: 'OauthParameter', description: CLIENT_SECRET }),
  }),
});
const RevokeInput = builder.inputType('RevokeOauthTokenInput', {
  description: 'A revocation request (RFC 7009). Unknown members are ignored.',
  fields: (t) => ({
    token: t.field({ type: 'OauthParameter', description: 'The token to end, unless it is sent as Bearer.' }),
    tokenTypeHint: t.field({ type: 'OauthParameter', description: 'Not needed: tokens tell their kind.' }),
    clientId: t.field({ type: 'OauthParameter', description: CLIENT_ID }),
    clientSecret: t.field({ type: 'OauthParameter', description: CLIENT_SECRET }),
  }),
});
const IntrospectInput = builder.inputType('IntrospectOauthTokenInput', {
  description: 'An introspection request (RFC 7662). Unknown members are ignored.',
  fields: (t) => ({
    token: t.field({ type: 'OauthParameter', description: 'The token, unless it is sent as Bearer.' }),
    tokenTypeHint: t.field({ type: 'OauthParameter', description: 'Not needed: tokens tell their kind.' }),
  }),
});

const AUTHORIZATION = 'The Authorization header: Basic with id and secret of a client, or Bearer with a token.';

builder.queryFields((t) => ({
  introspectOauthToken: t.field({
    type: IntrospectionType,
    scope: 'public',
    description: 'Tells what a token is good for.',
    args: {
      authorization: t.arg({ type: 'OauthParameter', description: AUTHORIZATION }),
      input: t.arg({ type: IntrospectInput }),
    },
    resolve: (_, { authorization, input }, context) => introspectOauthToken(context, { ...input, authorization }),
  }),
}));

builder.mutationFields((t) => ({
  registerOauthClient: t.field({
    type: OauthClientType,
    scope: 'public',
    description: 'Registers an OAuth client, in the account of the caller or in a new one of its own.',
    args: { input: t.arg({ type: RegisterInput, required: true }) },
    resolve: (_, { input }, context) => registerOauthClient(context, input),
  }),
  issueOauthToken: t.field({
    type: OauthTokenType,
    scope: 'public',
    description: 'Exchanges the secret of a client for an access token.',
    args: {
      authorization: t.arg({ type: 'OauthParameter', description: AUTHORIZATION }),
      input: t.arg({ type: TokenInput, required: true }),
    },
    resolve: (_, { authorization, input }, context) => issueOauthToken(context, { ...input, authorization }),
  }),
  revokeOauthToken: t.field({
    type: 'Empty',
    scope: 'public',
    description: 'Ends a token and its pair.',
    args: {
      authorization: t.arg({ type: 'OauthParameter', description: AUTHORIZATION }),
      input: t.arg({ type: RevokeInput }),
    },
    resolve: (_, { authorization, input }, context) => revokeOauthToken(context, { ...input, authorization }),
  }),
}));
