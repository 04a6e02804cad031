/** Creates, lists and revokes API keys. */
import type { ApiKey } from '../../entities/accounts/credential.ts';
import { type CreatedApiKey, createApiKey, listApiKeys, revokeApiKey } from '../../resolvers/accounts/auth/api-keys.ts';
import { shownUse } from '../../resolvers/accounts/auth/credential.ts';
import { builder, enumType, inputType, objectType, STEP_UP } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const ApiKeyStatus = enumType('ApiKeyStatus', 'The state of an API key. Only active keys work.', [
  'ACTIVE',
  'EXPIRED',
  'REVOKED',
]);

const ApiKeyType = objectType<ApiKey>('ApiKey', 'An API key, without its secret.', (t) => ({
  keyId: t.exposeID('id', { description: 'Identifies the key.' }),
  name: t.exposeString('name', { description: 'The name that its creator chose.' }),
  scope: t.exposeString('scope', { description: 'One or more of read, servers, billing, full.' }),
  prefix: t.exposeString('prefix', { description: 'The first 13 characters of the key.' }),
  status: t.expose('status', { type: ApiKeyStatus, description: 'Whether the key works.' }),
  ipAllowlist: t.exposeStringList('ipAllowlist', {
    description: 'Networks (CIDR) that may use the key; none: all networks.',
  }),
  spendLimitUsd: t.expose('spendLimitMicros', {
    type: 'Usd',
    nullable: true,
    description: 'The most that the key may spend in a calendar month (UTC).',
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
    nullable: true,
    description: 'When the key stops working; null: never.',
  }),
  revokedAt: t.expose('revokedAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When its owner or the operator ended the key.',
  }),
}));

const CreatedApiKeyType = objectType<CreatedApiKey>('CreatedApiKey', 'A new key.', (t) => ({
  apiKey: t.expose('apiKey', { type: ApiKeyType }),
  plaintext: t.exposeString('plaintext', { description: 'The key itself. The service shows it only here.' }),
}));

const ApiKeyPage = pageOf('ApiKey', ApiKeyType);

const CreateApiKeyInput = inputType('CreateApiKeyInput', (t) => ({
  name: t.field({ type: 'KeyName', required: true, description: 'A name to recognise the key by.' }),
  scope: t.field({
    type: 'ScopeList',
    required: true,
    description: 'read, servers, billing, full, or several with spaces.',
  }),
  ipAllowlist: t.field({
    type: 'IpAllowlist',
    description: 'Up to 20 networks (CIDR) that may use the key, as a list or with commas. Default: all networks.',
  }),
  expiresAt: t.field({ type: 'DateTime', description: 'When the key stops working. Default: never.' }),
  spendLimitUsd: t.field({
    type: 'UsdLimit',
    description: 'The most to spend in a calendar month (UTC). Default: the whole balance.',
  }),
  totpCode: t.field({ type: 'TotpCode', description: STEP_UP }),
}));

builder.queryFields((t) => ({
  apiKeys: t.field({
    type: ApiKeyPage,
    scope: 'read',
    description: 'The API keys of the account, newest first.',
    args: {
      ...pageArgs(),
      status: t.arg({ type: [ApiKeyStatus], description: 'Only keys in these states.' }),
    },
    resolve: (_, filter, context) => listApiKeys(context, filter),
  }),
}));

builder.mutationFields((t) => ({
  createApiKey: t.field({
    type: CreatedApiKeyType,
    scope: 'full',
    errors: ['api_key_limit_reached'],
    creates: 'credential',
    description: 'Creates an API key. An account can have ten active keys.',
    args: { input: t.arg({ type: CreateApiKeyInput, required: true }) },
    resolve: (_, { input: { spendLimitUsd: spendLimitMicros, ...input } }, context) =>
      createApiKey(context, { ...input, spendLimitMicros }),
  }),
  revokeApiKey: t.field({
    type: ApiKeyType,
    scope: 'full',
    whileSuspended: true,
    description: 'Revokes an API key at once.',
    args: { keyId: t.arg({ type: 'ID', required: true, description: 'The key to revoke.' }) },
    resolve: (_, { keyId }, context) => revokeApiKey(context, keyId),
  }),
}));
