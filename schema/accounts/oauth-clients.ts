/** The OAuth clients of an account: listed, and deleted. How they come to be is in oauth.ts. */
import type { OauthClient } from '../../entities/accounts/oauth-client.ts';
import { deleteOauthClient, listOauthClients } from '../../resolvers/accounts/oauth/clients.ts';
import { builder } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const OauthClientEntry = builder.objectRef<OauthClient>('OauthClientEntry').implement({
  description: 'An OAuth client, without its secret.',
  fields: (t) => ({
    clientId: t.exposeID('id', { description: 'Identifies the client.' }),
    accountId: t.exposeID('accountId', { description: 'Whose it is.' }),
    clientName: t.string({ nullable: true, resolve: ({ metadata }) => metadata.clientName }),
    scope: t.exposeString('scope', { description: 'The widest scope of its tokens.' }),
    grantTypes: t.exposeStringList('grantTypes'),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it last got a token, with the precision of a minute.',
    }),
  }),
});
const OauthClientPage = pageOf('OauthClientEntry', OauthClientEntry);
const DeletedOauthClient = builder
  .objectRef<Awaited<ReturnType<typeof deleteOauthClient>>>('DeletedOauthClient')
  .implement({
    description: 'A client that is gone.',
    fields: (t) => ({
      clientId: t.exposeID('id'),
      tokensRevoked: t.exposeInt('tokensRevoked', { description: 'How many sessions of it ended.' }),
    }),
  });

builder.queryFields((t) => ({
  oauthClients: t.field({
    type: OauthClientPage,
    scope: 'read',
    description: 'The OAuth clients of the account, newest first; for the operator those of all.',
    args: pageArgs(),
    resolve: (_, page, context) => listOauthClients(context, page),
  }),
}));

builder.mutationFields((t) => ({
  deleteOauthClient: t.field({
    type: DeletedOauthClient,
    scope: 'full',
    whileSuspended: true,
    description: 'Deletes an OAuth client. Its tokens end at once.',
    args: { clientId: t.arg({ type: 'ID', required: true, description: 'The client.' }) },
    resolve: (_, { clientId }, context) => deleteOauthClient(context, clientId),
  }),
}));
