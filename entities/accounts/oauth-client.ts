/** OAuth clients (RFC 7591): a secret that machines exchange for access tokens. Only its digest is stored. */
import {
  bytes,
  entity,
  json,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  textArray,
  timestamp,
} from '../database/table.ts';

export const GRANT_TYPES = ['client_credentials', 'refresh_token'] as const;
export const AUTH_METHODS = ['client_secret_basic', 'client_secret_post'] as const;

/** What a client says of itself. It is kept and repeated, and decides nothing. */
export interface ClientMetadata {
  clientName?: string | null | undefined;
  clientUri?: string | null | undefined;
  logoUri?: string | null | undefined;
  contacts?: string[] | null | undefined;
  softwareId?: string | null | undefined;
  softwareVersion?: string | null | undefined;
}

export const OauthClient = entity(
  'oauth_client',
  {
    id: key(),
    accountId: text(),
    secretDigest: bytes(),
    /** The widest scope that its tokens can have. */
    scope: text(),
    grantTypes: textArray(),
    /** As registered; both methods are taken from every client. */
    authMethod: oneOf(...AUTH_METHODS),
    /** Kept and unused: nothing redirects. */
    redirectUris: textArray(),
    metadata: json<ClientMetadata>(),
    createdAt: now(),
    /** When it last got a token, with the precision of a minute. */
    lastUsedAt: nullable(timestamp()),
  },
  [{ name: 'oauth_client_account', columns: ['accountId', 'id'] }],
);
export type OauthClient = RowOf<typeof OauthClient>;
