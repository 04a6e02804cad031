/**
 * Dynamic client registration (RFC 7591). A stranger's client gets an account of its own, so that an agent needs no
 * human to begin; a client that is registered with a credential joins the account of that credential.
 */
import { Account } from '../../../entities/accounts/account.ts';
import {
  AUTH_METHODS,
  type ClientMetadata,
  GRANT_TYPES,
  OauthClient,
} from '../../../entities/accounts/oauth-client.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { newId } from '../../../entities/ids.ts';
import { lockAccount, openBalance } from '../../../entities/payments/ledger.ts';
import { digest, mintCredential } from '../../../entities/secrets.ts';
import { accountOf, actorOf, type Context } from '../../context.ts';
import { requireActive, requireScope } from '../auth/scope.ts';
import { readScope } from './scope.ts';

export interface ClientRegistration extends ClientMetadata {
  scope?: string | null | undefined;
  grantTypes?: string[] | null | undefined;
  responseTypes?: string[] | null | undefined;
  tokenEndpointAuthMethod?: string | null | undefined;
  redirectUris?: string[] | null | undefined;
}

export interface RegisteredClient {
  client: OauthClient;
  /** Cannot be read again. */
  clientSecret: string;
}

/** @throws ApiError invalid_client_metadata, insufficient_scope, or validation_failed where there are too many */
export async function registerOauthClient(
  context: Context,
  registration: ClientRegistration,
): Promise<RegisteredClient> {
  const { clientName, clientUri, logoUri, contacts, softwareId, softwareVersion } = registration;
  const checked = checkedRegistration(registration);
  if (context.viewer) requireScope(context.viewer, 'full');
  requireActive(context.viewer);
  const joined = context.viewer && accountOf(context);
  const [id, clientSecret] = [newId('cl'), mintCredential('cs')];
  const client = await context.db.transaction(async (tx) => {
    const accountId = joined ? await countedIn(context, tx, joined) : await newAgent(tx);
    await tx.manager.insert(OauthClient, {
      id,
      accountId,
      secretDigest: digest(clientSecret),
      ...checked,
      metadata: { clientName, clientUri, logoUri, contacts, softwareId, softwareVersion },
    });
    const actor = actorOf(context);
    await record(tx, accountId, id, { type: 'oauth_client.created', actor });
    await context.provisioning.accounts.removeUnusedClient(tx, { id, accountId });
    return tx.manager.findOneByOrFail(OauthClient, { id });
  });
  return { client, clientSecret };
}

/** What decides of a registration, with its defaults. @throws ApiError invalid_client_metadata */
function checkedRegistration(registration: ClientRegistration) {
  const { scope, grantTypes, responseTypes, tokenEndpointAuthMethod, redirectUris } = registration;
  const grants = [...new Set(grantTypes ?? ['client_credentials'])];
  if (!grants.every((grant) => (GRANT_TYPES as readonly string[]).includes(grant)) || responseTypes?.length)
    throw new ApiError(
      'invalid_client_metadata',
      'Authorization in a browser is not available. Register with grant_types client_credentials, refresh_token or both, and no response_types.',
    );
  if (!grants.includes('client_credentials'))
    throw new ApiError('invalid_client_metadata', 'Without client_credentials a client never gets its first token.');
  const authMethod = AUTH_METHODS.find((method) => method === (tokenEndpointAuthMethod ?? 'client_secret_basic'));
  if (!authMethod)
    throw new ApiError('invalid_client_metadata', `token_endpoint_auth_method is one of ${AUTH_METHODS.join(', ')}.`);
  return {
    scope: readScope(scope ?? 'read', 'invalid_client_metadata'),
    grantTypes: grants,
    authMethod,
    redirectUris: redirectUris ?? [],
  };
}

/** @throws ApiError validation_failed if the account has as many clients as it may have */
async function countedIn({ limits }: Context, tx: Transaction, accountId: string): Promise<string> {
  await lockAccount(tx, accountId);
  if ((await tx.manager.countBy(OauthClient, { accountId })) >= limits.oauthClients)
    throw new ApiError(
      'validation_failed',
      `The account has ${limits.oauthClients} OAuth clients, and may have no more.`,
    );
  return accountId;
}

async function newAgent(tx: Transaction): Promise<string> {
  const id = newId('acct');
  await tx.manager.insert(Account, { id, kind: 'AGENT', email: null, passwordHash: null });
  await openBalance(tx, id);
  return id;
}
