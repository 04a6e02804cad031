/**
 * Dynamic client registration (RFC 7591). Without a credential, the client gets an account of its own, so an agent needs
 * no human. With a credential, the client joins the account of the credential.
 */
import { Account } from '../../../entities/accounts/account.ts';
import {
  AUTH_METHODS,
  type ClientMetadata,
  GRANT_TYPES,
  OauthClient,
} from '../../../entities/accounts/oauth-client.ts';
import { insert, snake } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { newId } from '../../../entities/ids.ts';
import { openBalance } from '../../../entities/payments/ledger.ts';
import { digest, mintCredential } from '../../../entities/secrets.ts';
import { accountOf, actorOf, type Context } from '../../context.ts';
import { bytesOf } from '../../pages.ts';
import { lockOwnAccount } from '../account.ts';
import { type AskedLimits, newLimits } from '../auth/inherited-limits.ts';
import { requireActive, requireScope } from '../auth/scope.ts';
import { admitRegistration, admitUnproven } from '../registration.ts';
import { readScope } from './scope.ts';

export interface ClientRegistration extends ClientMetadata, AskedLimits {
  scope?: string | null | undefined;
  grantTypes?: string[] | null | undefined;
  responseTypes?: string[] | null | undefined;
  tokenEndpointAuthMethod?: string | null | undefined;
  redirectUris?: string[] | null | undefined;
  proofOfWork?: string | null | undefined;
}

export interface RegisteredClient {
  client: OauthClient;
  /** The service cannot show it again. */
  clientSecret: string;
}

/** The most redirect URIs, and the most contacts. */
const ENTRIES_MAX = 10;
/** The most bytes of the metadata, as JSON. Strangers register clients for nothing. */
const METADATA_BYTES_MAX = 8 * 1024;

/** @throws ApiError invalid_client_metadata, insufficient_scope, or validation_failed at the limit of the account */
export async function registerOauthClient(
  context: Context,
  registration: ClientRegistration,
): Promise<RegisteredClient> {
  const { clientName, clientUri, logoUri, contacts, softwareId, softwareVersion } = registration;
  const checked = checkedRegistration(registration);
  const metadata = { clientName, clientUri, logoUri, contacts, softwareId, softwareVersion };
  refuseSize({ ...metadata, redirectUris: checked.redirectUris });
  if (context.viewer) requireScope(context.viewer, 'full');
  requireActive(context.viewer);
  const joined = context.viewer !== null && Boolean(accountOf(context));
  const proven = joined || (await admitRegistration(context, registration.proofOfWork));
  const [id, clientSecret] = [newId('cl'), mintCredential('cs')];
  const client = await context.db.transaction(async (tx) => {
    if (!proven) await admitUnproven(context, tx);
    const accountId = joined ? await countedIn(context, tx) : await newAgent(tx);
    const limits = newLimits(context, registration, 'invalid_client_metadata');
    await insert(tx, OauthClient, {
      id,
      accountId,
      secretDigest: digest(clientSecret),
      ...checked,
      ...limits,
      metadata,
    });
    await record(tx, accountId, id, { type: 'oauth_client.created', actor: actorOf(context) });
    await context.provisioning.accounts.removeUnusedClient(tx, { id, accountId });
    return tx.manager.findOneByOrFail(OauthClient, { id });
  });
  return { client, clientSecret };
}

/** Checks the metadata that take effect, and fills in their defaults. @throws ApiError invalid_client_metadata */
function checkedRegistration(registration: ClientRegistration) {
  const { scope, grantTypes, responseTypes, tokenEndpointAuthMethod, redirectUris } = registration;
  const grants = [...new Set(grantTypes ?? ['client_credentials'])];
  if (!grants.every((grant) => (GRANT_TYPES as readonly string[]).includes(grant)) || responseTypes?.length)
    throw new ApiError(
      'invalid_client_metadata',
      'Authorization in a browser is not available. Use only the grant_types client_credentials and refresh_token, and no response_types.',
    );
  if (!grants.includes('client_credentials'))
    throw new ApiError(
      'invalid_client_metadata',
      'A client needs the grant type client_credentials to get its first token.',
    );
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

/** @throws ApiError invalid_client_metadata */
function refuseSize(metadata: ClientMetadata & { redirectUris: string[] }): void {
  for (const member of ['redirectUris', 'contacts'] as const) {
    const entries = metadata[member]?.length ?? 0;
    if (entries > ENTRIES_MAX)
      throw new ApiError(
        'invalid_client_metadata',
        `${snake(member)} has ${entries} entries, and may have at most ${ENTRIES_MAX}.`,
      );
  }
  const bytes = bytesOf(metadata);
  if (bytes > METADATA_BYTES_MAX)
    throw new ApiError(
      'invalid_client_metadata',
      `The metadata have ${bytes} bytes as JSON, and may have at most ${METADATA_BYTES_MAX}.`,
    );
}

/** Checks the limit of the account. @throws ApiError validation_failed */
async function countedIn(context: Context, tx: Transaction): Promise<string> {
  const { limits } = context;
  const accountId = await lockOwnAccount(tx, context);
  if ((await tx.manager.countBy(OauthClient, { accountId })) >= limits.oauthClients)
    throw new ApiError(
      'validation_failed',
      `The account has reached its limit of ${limits.oauthClients} OAuth clients. Delete one first.`,
    );
  return accountId;
}

async function newAgent(tx: Transaction): Promise<string> {
  const id = newId('acct');
  await insert(tx, Account, { id, kind: 'AGENT', email: null, passwordHash: null });
  await openBalance(tx, id);
  return id;
}
