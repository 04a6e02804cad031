/** Authentication at the OAuth endpoints: a client sends its secret (RFC 6749, section 2.3.1), or a caller a token. */
import { timingSafeEqual } from 'node:crypto';
import { EndedClient, NOTE_CLIENT_USE, OauthClient } from '../../../entities/accounts/oauth-client.ts';
import { find } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { isId } from '../../../entities/ids.ts';
import { allowedBy } from '../../../entities/networks.ts';
import { digest } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';

/** The proof of a client's identity. The header has priority over the body. */
export interface ClientCredentials {
  /** The Authorization header. */
  authorization?: string | null | undefined;
  clientId?: string | null | undefined;
  clientSecret?: string | null | undefined;
}

/**
 * Returns the client that sent its id and secret, by HTTP Basic or in the body.
 * @throws ApiError invalid_client or ip_not_allowed
 */
export async function authenticateClient(context: Context, credentials: ClientCredentials): Promise<OauthClient> {
  const { db, address, security } = context;
  const [id, secret] = basicOf(credentials.authorization) ?? [credentials.clientId, credentials.clientSecret];
  if (!id || !secret)
    throw new ApiError('invalid_client', 'Send client_id and client_secret, by HTTP Basic or in the body.');
  const client = isId('cl', id) && (await find(db, OauthClient, { id }));
  if (!client || !timingSafeEqual(client.secretDigest, digest(secret))) {
    const known = client || (isId('cl', id) && (await find(db, EndedClient, { id })));
    if (known) noteRefusal(context, known, 'refused');
    else security.count('unknown credentials');
    throw new ApiError('invalid_client');
  }
  if (client.expiresAt && client.expiresAt.getTime() <= Date.now()) {
    noteRefusal(context, client, 'refused');
    throw new ApiError('invalid_client', 'The client has expired. Register another by {RegisterOauthClient}.');
  }
  if (!allowedBy(client.ipAllowlist)(address)) {
    noteRefusal(context, client, 'network_refused');
    throw new ApiError('ip_not_allowed');
  }
  return client;
}

/** The source of a client's sessions. */
export const sourceOf = ({ id }: Pick<OauthClient, 'id'>): `oauth:${string}` => `oauth:${id}`;

/**
 * Notes that a client gets a token, and checks it once more. Another request may have ended it, or replaced its secret, since
 * its authentication. The caller holds the lock of the account.
 * @returns whether the client is the way into its account
 * @throws ApiError invalid_client
 */
export async function noteClientUse(context: Context, tx: Transaction, client: OauthClient): Promise<boolean> {
  const noted = await NOTE_CLIENT_USE.first(tx, [client.id, client.secretDigest]);
  if (noted) return noted.isWayIn;
  noteRefusal(context, client, 'refused');
  throw new ApiError('invalid_client', 'The client was deleted, has expired, or has another secret by now.');
}

/** Tells the owner of a client. */
export const noteRefusal = (
  { security, address }: Context,
  { id, accountId: account }: Pick<OauthClient, 'id' | 'accountId'>,
  what: 'refused' | 'network_refused',
): void => security.note({ type: `oauth_client.${what}`, account, address, resource: { type: 'oauth_client', id } });

/** Returns the token of a Bearer header (RFC 6750), unchecked. */
export const bearerOf = (authorization: string | null | undefined): string | undefined =>
  /^Bearer +([^\s]+) *$/i.exec(authorization ?? '')?.[1];

/** Reads a Basic header, whose id and secret are each form-encoded. @throws ApiError invalid_client */
function basicOf(authorization: string | null | undefined): readonly [id: string, secret: string] | undefined {
  const encoded = /^Basic(?: +(.*))?$/i.exec(authorization ?? '');
  if (!encoded) return undefined;
  const [id, secret, ...more] = Buffer.from(encoded[1] ?? '', 'base64')
    .toString('utf8')
    .split(':');
  if (!id || !secret || more.length)
    throw new ApiError('invalid_client', 'The service cannot read the Basic credentials.');
  try {
    return [formDecoded(id), formDecoded(secret)];
  } catch {
    throw new ApiError('invalid_client', 'The service cannot read the Basic credentials.');
  }
}

const formDecoded = (text: string) => decodeURIComponent(text.replaceAll('+', ' '));
