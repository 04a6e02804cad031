/** Registration, login and API keys. */
import type { ApiKey } from '../entities/credential.ts';
import { type CreatedApiKey, createApiKey, listApiKeys, revokeApiKey } from '../resolvers/auth/api-keys.ts';
import { login } from '../resolvers/auth/login.ts';
import { register } from '../resolvers/auth/register.ts';
import type { LoggedIn, TokenPair } from '../resolvers/auth/session.ts';
import { AccountType } from './account.ts';
import { builder } from './builder.ts';
import { pageArgs, pageOf } from './pages.ts';

const TokenPairType = builder.objectRef<TokenPair>('TokenPair').implement({
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

const AuthResult = builder.objectRef<LoggedIn>('AuthResult').implement({
  description: 'What a login leads to.',
  fields: (t) => ({
    totpRequired: t.boolean({ description: 'Whether a second factor must follow.', resolve: () => false }),
    account: t.expose('account', { type: AccountType }),
    tokens: t.expose('tokens', { type: TokenPairType }),
  }),
});

const ApiKeyStatus = builder.enumType('ApiKeyStatus', {
  description: 'Only active keys open doors.',
  values: ['ACTIVE', 'EXPIRED', 'REVOKED'] as const,
});

const ApiKeyType = builder.objectRef<ApiKey>('ApiKey').implement({
  description: 'A long-lived credential, without the credential itself.',
  fields: (t) => ({
    keyId: t.exposeID('id', { description: 'Identifies the key.' }),
    name: t.exposeString('name', { description: 'What its maker called it.' }),
    scope: t.exposeString('scope', { description: 'One or more of read, servers, billing, full.' }),
    prefix: t.exposeString('prefix', { description: 'The first 13 characters of the key.' }),
    status: t.expose('status', { type: ApiKeyStatus }),
    ipAllowlist: t.exposeStringList('ipAllowlist', { description: 'Networks (CIDR) that may use it; none: all.' }),
    spendLimitUsd: t.expose('spendLimitMicros', {
      type: 'Usd',
      nullable: true,
      description: 'What it may spend in a calendar month (UTC).',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'With the precision of a minute.',
    }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', nullable: true }),
    revokedAt: t.expose('revokedAt', { type: 'DateTime', nullable: true }),
  }),
});

const CreatedApiKeyType = builder.objectRef<CreatedApiKey>('CreatedApiKey').implement({
  description: 'A new key.',
  fields: (t) => ({
    apiKey: t.expose('apiKey', { type: ApiKeyType }),
    plaintext: t.exposeString('plaintext', { description: 'The key itself. It is shown here and never again.' }),
  }),
});

const ApiKeyPage = pageOf('ApiKey', ApiKeyType);

const RegisterInput = builder.inputType('RegisterInput', {
  fields: (t) => ({
    email: t.field({
      type: 'Email',
      required: true,
      description: 'Names the account at login. No mail is sent to it.',
    }),
    password: t.field({ type: 'Password', required: true, description: '8 to 128 characters.' }),
  }),
});
const LoginInput = builder.inputType('LoginInput', {
  fields: (t) => ({
    email: t.field({ type: 'Email', required: true }),
    password: t.field({ type: 'Password', required: true }),
  }),
});
const CreateApiKeyInput = builder.inputType('CreateApiKeyInput', {
  fields: (t) => ({
    name: t.field({ type: 'KeyName', required: true, description: 'A name to recognise the key by.' }),
    scope: t.field({
      type: 'ScopeList',
      required: true,
      description: 'One or more of read, servers, billing and full, separated by spaces.',
    }),
  }),
});

builder.queryFields((t) => ({
  apiKeys: t.field({
    type: ApiKeyPage,
    scope: 'read',
    description: 'The API keys of the account, newest first.',
    args: pageArgs(),
    resolve: (_, page, context) => listApiKeys(context, page),
  }),
}));

builder.mutationFields((t) => ({
  register: t.field({
    type: AuthResult,
    scope: 'public',
    description: 'Makes an account and logs it in.',
    args: { input: t.arg({ type: RegisterInput, required: true }) },
    resolve: (_, { input }, context) => register(context, input),
  }),
  login: t.field({
    type: AuthResult,
    scope: 'public',
    description: 'Exchanges an email and a password for tokens.',
    args: { input: t.arg({ type: LoginInput, required: true }) },
    resolve: (_, { input }, context) => login(context, input),
  }),
  createApiKey: t.field({
    type: CreatedApiKeyType,
    scope: 'full',
    description: 'Makes a long-lived API key. An account can have ten active ones.',
    args: { input: t.arg({ type: CreateApiKeyInput, required: true }) },
    resolve: (_, { input }, context) => createApiKey(context, input),
  }),
  revokeApiKey: t.field({
    type: ApiKeyType,
    scope: 'full',
    description: 'Revokes an API key at once.',
    args: { keyId: t.arg({ type: 'ID', required: true, description: 'The key to revoke.' }) },
    resolve: (_, { keyId }, context) => revokeApiKey(context, keyId),
  }),
}));
