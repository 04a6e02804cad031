/** Who calls the OAuth endpoints: a client with its secret (RFC 6749, section 2.3.1), or who holds a token. */
import { timingSafeEqual } from 'node:crypto';
import { OauthClient } from '../../../entities/accounts/oauth-client.ts';
import { ApiError } from '../../../entities/errors.ts';
import { isId } from '../../../entities/ids.ts';
import { credentialKind, digest } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';

/** What a request proves itself with. The header wins over the body. */
export interface ClientCredentials {
  /** The Authorization header. */
  authorization?: string | null | undefined;
  clientId?: string | null | undefined;
  clientSecret?: string | null | undefined;
}

/** The client that sent its id and secret, by Basic or in the body. @throws ApiError invalid_client */
export async function authenticateClient({ db }: Context, credentials: ClientCredentials): Promise<OauthClient> {
  const [id, secret] = basicOf(credentials.authorization) ?? [credentials.clientId, credentials.clientSecret];
  if (!id || !secret)
    throw new ApiError('invalid_client', 'Send client_id and client_secret, by HTTP Basic or in the body.');
  const client =
    isId('cl', id) && credentialKind(secret) === 'cs' && (await db.source.manager.findOneBy(OauthClient, { id }));
  if (!client || !timingSafeEqual(client.secretDigest, digest(secret))) throw new ApiError('invalid_client');
  return client;
}

/** The token of a Bearer header (RFC 6750), unchecked. */
export const bearerOf = (authorization: string | null | undefined): string | undefined =>
  /^Bearer +([^\s]+) *$/i.exec(authorization ?? '')?.[1];

/** Id and secret of a Basic header, each form-encoded before they were joined. @throws ApiError invalid_client */
function basicOf(authorization: string | null | undefined): readonly [id: string, secret: string] | undefined {
  const encoded = /^Basic(?: +(.*))?$/i.exec(authorization ?? '');
  if (!encoded) return undefined;
  const [id, secret, ...more] = Buffer.from(encoded[1] ?? '', 'base64')
    .toString('utf8')
    .split(':');
  if (!id || !secret || more.length) throw new ApiError('invalid_client', 'The Basic credentials cannot be read.');
  try {
    return [formDecoded(id), formDecoded(secret)];
  } catch {
    throw new ApiError('invalid_client', 'The Basic credentials cannot be read.');
  }
}

const formDecoded = (text: string) => decodeURIComponent(text.replaceAll('+', ' '));
