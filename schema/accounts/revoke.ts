/** Ends the credentials of an account, or of all of them. */
import { type Revoked, revokeAccount } from '../../resolvers/accounts/auth/revoke.ts';
import { type RevokedAll, revokeAllCredentials } from '../../resolvers/accounts/revoke-all.ts';
import { builder, objectType } from '../builder.ts';

const RevokedCredentials = objectType<Revoked>('RevokedCredentials', 'The numbers of ended credentials.', (t) => ({
  sessionsRevoked: t.exposeInt('sessionsRevoked'),
  apiKeysRevoked: t.exposeInt('apiKeysRevoked'),
  oauthClientsDeleted: t.exposeInt('oauthClientsDeleted'),
  webhookSecretsReplaced: t.exposeInt('webhookSecretsReplaced', {
    description: 'The number of webhooks with a new secret, which are disabled until their owner rotates it.',
  }),
}));

const RevokedAllType = objectType<RevokedAll>(
  'RevokedAllCredentials',
  'The numbers of ended credentials of all accounts.',
  (t) => ({
    accounts: t.exposeInt('accounts'),
    sessionsRevoked: t.exposeInt('sessionsRevoked'),
    apiKeysRevoked: t.exposeInt('apiKeysRevoked'),
    oauthClientsDeleted: t.exposeInt('oauthClientsDeleted'),
    webhookSecretsReplaced: t.exposeInt('webhookSecretsReplaced', {
      description: 'The number of disabled webhooks, with those of the operator.',
    }),
    operatorsEnded: t.exposeInt('operatorsEnded'),
    clientsKept: t.exposeStringList('clientsKept', {
      description: 'OAuth clients that are the only way into their accounts, and keep their secrets. See resetClient.',
    }),
  }),
);

builder.mutationFields((t) => ({
  revokeCredentials: t.field({
    type: RevokedCredentials,
    scope: 'operator',
    right: 'support',
    description:
      'Ends all sessions, API keys and OAuth clients of an account, and replaces the secrets of its webhooks. Its owner logs in again. An account without a password keeps the client that is its way in, with its secret. If that leaked, see resetClient.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The account.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, which the customer can read.' }),
    },
    resolve: (_, { id, reason }, context) => revokeAccount(context, id, reason),
  }),
  revokeAllCredentials: t.field({
    type: RevokedAllType,
    scope: 'operator',
    right: 'owner',
    description:
      'Ends the credentials of all accounts as revokeCredentials does, disables the webhooks of the operator, and ends all named operators. A restore needs it. Call it again if it was interrupted.',
    args: { reason: t.arg({ type: 'Line', required: true, description: 'The reason, which all customers can read.' }) },
    resolve: (_, { reason }, context) => revokeAllCredentials(context, reason),
  }),
}));
