/** Lists and deletes the OAuth clients of an account, and replaces their secrets. */
import type { OauthClient } from '../../entities/accounts/oauth-client.ts';
import { shownUse } from '../../resolvers/accounts/auth/credential.ts';
import {
  deleteOauthClient,
  listOauthClients,
  type RotatedClient,
  resetClient,
  rotateClientSecret,
} from '../../resolvers/accounts/oauth/clients.ts';
import { builder, inputType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const OauthClientEntry = objectType<OauthClient>('OauthClientEntry', 'An OAuth client, without its secret.', (t) => ({
  clientId: t.exposeID('id', { description: 'Identifies the client.' }),
  accountId: t.exposeID('accountId', { description: 'The account of the client.' }),
  clientName: t.string({
    nullable: true,
    description: 'The name that the client gave.',
    resolve: ({ metadata }) => metadata.clientName,
  }),
  scope: t.exposeString('scope', { description: 'The widest scope of its tokens.' }),
  grantTypes: t.exposeStringList('grantTypes', { description: 'The grants that the client may use.' }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  lastUsedAt: t.field({
    type: 'DateTime',
    nullable: true,
    description: 'When the client last got a token, with the precision of a minute.',
    resolve: shownUse,
  }),
  expiresAt: t.expose('expiresAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When the client and all its tokens stop.',
  }),
  spendLimitUsd: t.expose('spendLimitMicros', {
    type: 'Usd',
    nullable: true,
    description: 'The most that all its tokens together may spend in a calendar month (UTC).',
  }),
  ipAllowlist: t.exposeStringList('ipAllowlist', {
    description: 'Networks (CIDR) that may use its tokens; none: all networks.',
  }),
}));
const OauthClientPage = pageOf('OauthClientEntry', OauthClientEntry);
const DeletedOauthClient = builder
  .objectRef<Awaited<ReturnType<typeof deleteOauthClient>>>('DeletedOauthClient')
  .implement({
    description: 'A deleted client.',
    fields: (t) => ({
      clientId: t.exposeID('id', { description: 'The deleted client.' }),
      tokensRevoked: t.exposeInt('tokensRevoked', { description: 'The number of its sessions that ended.' }),
    }),
  });

const RotatedOauthClient = objectType<RotatedClient>(
  'RotatedOauthClient',
  'A client with its new secret, which the service shows only here.',
  (t) => ({
    clientId: t.exposeID('id', { description: 'The client.' }),
    clientSecret: t.exposeString('clientSecret', { description: 'The new secret. Keep it.' }),
    tokensRevoked: t.exposeInt('tokensRevoked', { description: 'The number of its sessions that ended.' }),
  }),
);
const RotateInput = inputType('RotateOauthClientSecretInput', (t) => ({
  clientSecret: t.field({ type: 'Token', required: true, description: 'The present secret of the client.' }),
}));

builder.queryFields((t) => ({
  oauthClients: t.field({
    type: OauthClientPage,
    scope: 'full',
    description: 'The OAuth clients of the account, newest first. The operator reads the clients of all accounts.',
    args: pageArgs(),
    resolve: (_, page, context) => listOauthClients(context, page),
  }),
}));

builder.mutationFields((t) => ({
  deleteOauthClient: t.field({
    type: DeletedOauthClient,
    scope: 'full',
    whileSuspended: true,
    description: 'Deletes an OAuth client, and ends its tokens and the keys that they created at once.',
    args: { clientId: t.arg({ type: 'ID', required: true, description: 'The client.' }) },
    resolve: (_, { clientId }, context) => deleteOauthClient(context, clientId),
  }),
  rotateOauthClientSecret: t.field({
    type: RotatedOauthClient,
    scope: 'read',
    errors: ['invalid_client'],
    whileSuspended: true,
    creates: 'tokens',
    description:
      'Replaces the secret of an OAuth client of the account. The caller proves the present one. Other tokens of the client end at once. If the client is the only way into the account, all that it created ends, too.',
    args: {
      clientId: t.arg({ type: 'ID', required: true, description: 'The client.' }),
      input: t.arg({ type: RotateInput, required: true }),
    },
    resolve: (_, { clientId, input }, context) => rotateClientSecret(context, clientId, input.clientSecret),
  }),
  resetClient: t.field({
    type: RotatedOauthClient,
    scope: 'operator',
    // Its holder acts for the customer from then on.
    right: 'owner',
    creates: 'tokens',
    description:
      'Gives an OAuth client a new secret, and ends its tokens and all that it created. Hand the secret to the owner.',
    args: {
      clientId: t.arg({ type: 'ID', required: true, description: 'The client.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, which the customer can read.' }),
    },
    resolve: (_, { clientId, reason }, context) => resetClient(context, clientId, reason),
  }),
}));
