/** OAuth 2.1 for machines: client registration, tokens, revocation and introspection. */
import { type Introspection, introspectOauthToken } from '../../resolvers/accounts/oauth/introspect.ts';
import { type RegisteredClient, registerOauthClient } from '../../resolvers/accounts/oauth/register.ts';
import { revokeOauthToken } from '../../resolvers/accounts/oauth/revoke.ts';
import { type IssuedToken, issueOauthToken } from '../../resolvers/accounts/oauth/token.ts';
import { builder, objectType, STEP_UP } from '../builder.ts';

const OauthClientType = objectType<RegisteredClient>(
  'OauthClient',
  'A new OAuth client (RFC 7591). The service shows the secret only here.',
  (t) => ({
    clientId: t.id({ description: 'Identifies the client.', resolve: ({ client }) => client.id }),
    clientSecret: t.exposeString('clientSecret', { description: 'The secret that authenticates the client. Keep it.' }),
    clientIdIssuedAt: t.field({
      type: 'EpochSeconds',
      description: 'When the client registered.',
      resolve: ({ client }) => client.createdAt,
    }),
    clientSecretExpiresAt: t.field({
      type: 'EpochSeconds',
      description: 'When the secret and all tokens expire, in seconds since the epoch; 0: never.',
      resolve: ({ client: { expiresAt } }) => expiresAt ?? new Date(0),
    }),
    scope: t.string({ description: 'The widest scope of its tokens.', resolve: ({ client }) => client.scope }),
    grantTypes: t.stringList({
      description: 'The grants that the client may use.',
      resolve: ({ client }) => client.grantTypes,
    }),
    responseTypes: t.stringList({ description: 'Always empty.', resolve: () => [] }),
    tokenEndpointAuthMethod: t.string({
      description: 'The registered method; client_secret_basic and client_secret_post both work.',
      resolve: ({ client }) => client.authMethod,
    }),
    redirectUris: t.stringList({ description: 'Stored, but not used.', resolve: ({ client }) => client.redirectUris }),
    clientName: t.string({
      nullable: true,
      description: 'The name that the client gave.',
      resolve: ({ client }) => client.metadata.clientName,
    }),
    clientUri: t.string({
      nullable: true,
      description: "The client's site, as it gave it.",
      resolve: ({ client }) => client.metadata.clientUri,
    }),
    logoUri: t.string({
      nullable: true,
      description: "The client's picture, as it gave it.",
      resolve: ({ client }) => client.metadata.logoUri,
    }),
    contacts: t.stringList({
      nullable: true,
      description: 'The people behind the client, as it named them.',
      resolve: ({ client }) => client.metadata.contacts,
    }),
    softwareId: t.string({
      nullable: true,
      description: 'The id of the software, as the client gave it.',
      resolve: ({ client }) => client.metadata.softwareId,
    }),
    softwareVersion: t.string({
      nullable: true,
      description: 'The version of the software, as the client gave it.',
      resolve: ({ client }) => client.metadata.softwareVersion,
    }),
    expiresAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the client and all its tokens stop; null: never.',
      resolve: ({ client }) => client.expiresAt,
    }),
    spendLimitUsd: t.field({
      type: 'Usd',
      nullable: true,
      description: 'The most that all its tokens together may spend in a calendar month (UTC).',
      resolve: ({ client }) => client.spendLimitMicros,
    }),
    ipAllowlist: t.stringList({
      nullable: true,
      description: 'Networks (CIDR) that may use its tokens; none: all networks.',
      resolve: ({ client: { ipAllowlist } }) => (ipAllowlist.length ? ipAllowlist : null),
    }),
  }),
);

const OauthTokenType = objectType<IssuedToken>(
  'OauthToken',
  'An access token (RFC 6749). The service shows it once.',
  (t) => ({
    accessToken: t.exposeString('accessToken', { description: 'Send it as "Authorization: Bearer …".' }),
    tokenType: t.string({ description: 'Always Bearer.', resolve: () => 'Bearer' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
    scope: t.exposeString('scope', { description: 'The scope of the token.' }),
    refreshToken: t.exposeString('refreshToken', {
      nullable: true,
      description: 'Valid for one refresh. Only clients with the grant type refresh_token get one.',
    }),
  }),
);

const IntrospectionType = objectType<Introspection>(
  'TokenIntrospection',
  'The claims of a token (RFC 7662). A token that is not valid has only `active`.',
  (t) => ({
    active: t.exposeBoolean('active', { description: 'Whether the token is valid now.' }),
    scope: t.exposeString('scope', { nullable: true, description: 'The scope of the token.' }),
    clientId: t.exposeString('clientId', { nullable: true, description: 'The OAuth client of the token.' }),
    tokenType: t.exposeString('tokenType', { nullable: true, description: 'Bearer; refresh tokens have none.' }),
    exp: t.expose('exp', { type: 'EpochSeconds', nullable: true, description: 'When the token expires.' }),
    iat: t.expose('iat', { type: 'EpochSeconds', nullable: true, description: 'When the service issued the token.' }),
    sub: t.exposeString('sub', { nullable: true, description: 'The account.' }),
    aud: t.exposeStringList('aud', { nullable: true, description: 'The resources that accept the token.' }),
    iss: t.exposeString('iss', { nullable: true, description: 'The issuer of the token.' }),
    jti: t.exposeString('jti', { nullable: true, description: 'The id of the token. It is not secret.' }),
  }),
);

const RegisterInput = builder.inputType('RegisterOauthClientInput', {
  description: 'Client metadata (RFC 7591). The service ignores unknown members.',
  fields: (t) => ({
    scope: t.field({
      type: 'OauthParameter',
      description: 'The widest scope of its tokens: read (default), servers, billing, full, separated by spaces.',
    }),
    grantTypes: t.field({ type: ['OauthParameter'], description: 'client_credentials (default), and refresh_token.' }),
    responseTypes: t.field({
      type: ['OauthParameter'],
      description: 'Must be empty: there is no authorization in a browser.',
    }),
    tokenEndpointAuthMethod: t.field({
      type: 'OauthParameter',
      description: 'client_secret_basic (default) or client_secret_post.',
    }),
    redirectUris: t.field({ type: ['ClientUri'], description: 'Stored, but not used.' }),
    clientName: t.field({ type: 'ClientText', description: 'A name to recognise the client by.' }),
    clientUri: t.field({ type: 'ClientUri', description: "The client's site." }),
    logoUri: t.field({ type: 'ClientUri', description: "The client's picture." }),
    contacts: t.field({ description: 'The people behind the client.', type: ['ClientText'] }),
    softwareId: t.field({ type: 'ClientText', description: 'The id of the software.' }),
    softwareVersion: t.field({ type: 'ClientText', description: 'The version of the software.' }),
    proofOfWork: t.field({
      type: 'ProofOfWork',
      description:
        'After proof_of_work_required, and always to an onion service: the challenge, a colon, and a number. ' +
        'The SHA-256 of this text begins with as many zero bits as the second part of the challenge says.',
    }),
    expiresAt: t.field({ type: 'DateTime', description: 'When the client and all its tokens stop. Default: never.' }),
    spendLimitUsd: t.field({
      type: 'UsdLimit',
      description:
        'The most that all its tokens together may spend in a calendar month (UTC). Default: the whole balance.',
    }),
    ipAllowlist: t.field({
      type: 'IpAllowlist',
      description: 'Up to 20 networks (CIDR) that may use its tokens, as a list or with commas. Default: all networks.',
    }),
    totpCode: t.field({ type: 'TotpCode', description: STEP_UP }),
  }),
});

const CLIENT_ID = 'The client id, unless HTTP Basic has it.';
const CLIENT_SECRET = 'The client secret, unless HTTP Basic has it.';
const TokenInput = builder.inputType('IssueOauthTokenInput', {
  description: 'A token request (RFC 6749). The service ignores unknown members.',
  fields: (t) => ({
    grantType: t.field({ type: 'OauthParameter', required: true, description: 'client_credentials or refresh_token.' }),
    refreshToken: t.field({
      type: 'OauthParameter',
      description: 'Required for the grant type refresh_token. Valid once.',
    }),
    scope: t.field({
      type: 'OauthParameter',
      description: 'A part of the registered scope. Default: all of it. A refresh keeps the scope.',
    }),
    resource: t.field({
      type: ['OauthParameter'],
      description: 'The resource of the token (RFC 8707): the address of this service, or of its MCP endpoint.',
    }),
    clientId: t.field({ type: 'OauthParameter', description: CLIENT_ID }),
    clientSecret: t.field({ type: 'OauthParameter', description: CLIENT_SECRET }),
  }),
});
const RevokeInput = builder.inputType('RevokeOauthTokenInput', {
  description: 'A revocation request (RFC 7009). The service ignores unknown members.',
  fields: (t) => ({
    token: t.field({
      type: 'OauthParameter',
      description: 'The token to revoke, unless the Authorization header has it.',
    }),
    tokenTypeHint: t.field({ type: 'OauthParameter', description: 'Not needed: the token itself shows its kind.' }),
    clientId: t.field({ type: 'OauthParameter', description: CLIENT_ID }),
    clientSecret: t.field({ type: 'OauthParameter', description: CLIENT_SECRET }),
  }),
});
const IntrospectInput = builder.inputType('IntrospectOauthTokenInput', {
  description: 'An introspection request (RFC 7662). The service ignores unknown members.',
  fields: (t) => ({
    token: t.field({ type: 'OauthParameter', description: 'The token, unless the Authorization header has it.' }),
    tokenTypeHint: t.field({ type: 'OauthParameter', description: 'Not needed: the token itself shows its kind.' }),
  }),
});

const AUTHORIZATION = 'The Authorization header: Basic with a client id and secret, or Bearer with a token.';

builder.queryFields((t) => ({
  introspectOauthToken: t.field({
    type: IntrospectionType,
    scope: 'public',
    description: 'Returns the claims of a token.',
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
    errors: ['account_suspended', 'insufficient_scope', 'proof_of_work_required'],
    creates: 'credential',
    description: 'Registers an OAuth client, in the account of the caller or in a new one of its own.',
    args: { input: t.arg({ type: RegisterInput, required: true }) },
    resolve: (_, { input: { spendLimitUsd: spendLimitMicros, ...input } }, context) =>
      registerOauthClient(context, { ...input, spendLimitMicros }),
  }),
  issueOauthToken: t.field({
    type: OauthTokenType,
    scope: 'public',
    errors: [
      'invalid_client',
      'invalid_grant',
      'invalid_scope',
      'invalid_target',
      'unsupported_grant_type',
      'session_limit_reached',
    ],
    creates: 'tokens',
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
    errors: ['invalid_client'],
    description: 'Revokes a token and its pair.',
    args: {
      authorization: t.arg({ type: 'OauthParameter', description: AUTHORIZATION }),
      input: t.arg({ type: RevokeInput }),
    },
    resolve: (_, { authorization, input }, context) => revokeOauthToken(context, { ...input, authorization }),
  }),
}));
