/** Sessions: a pair of tokens, of which only digests are kept. */
import type { Account } from '../../entities/account.ts';
import {
  ACCESS_TOKEN_SECONDS,
  REFRESH_FAMILY_SECONDS,
  REFRESH_TOKEN_SECONDS,
  Session,
} from '../../entities/credential.ts';
import type { Transaction } from '../../entities/database.ts';
import { newId } from '../../entities/ids.ts';
import { record } from '../../entities/record.ts';
import { digest, mintCredential } from '../../entities/secrets.ts';
import type { Context } from '../context.ts';

/** Shown once; afterwards nobody can read the tokens again. */
export interface TokenPair {
  tokenId: string;
  accessToken: string;
  expiresIn: number;
  refreshToken: string;
  refreshExpiresIn: number;
  scope: string;
}

export interface LoggedIn {
  account: Account;
  tokens: TokenPair;
}

/** Opens a session of full scope. */
export async function openSession(
  { requestId, userAgent }: Context,
  tx: Transaction,
  accountId: string,
  source: 'register' | 'login',
): Promise<TokenPair> {
  const id = newId('tok');
  const accessToken = mintCredential('at');
  const refreshToken = mintCredential('rt');
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);
  await tx.manager.insert(Session, {
    id,
    accountId,
    familyId: id,
    source,
    userAgent: userAgent?.slice(0, 200) ?? null,
    scope: 'full',
    accessDigest: digest(accessToken),
    refreshDigest: digest(refreshToken),
    expiresAt: inSeconds(ACCESS_TOKEN_SECONDS),
    refreshExpiresAt: inSeconds(REFRESH_TOKEN_SECONDS),
    familyExpiresAt: inSeconds(REFRESH_FAMILY_SECONDS),
  });
  const actor = { type: 'access_token', id, name: source, requestId } as const;
  await record(tx, accountId, id, { type: 'session.created', resource: 'session', actor });
  return {
    tokenId: id,
    accessToken,
    expiresIn: ACCESS_TOKEN_SECONDS,
    refreshToken,
    refreshExpiresIn: REFRESH_TOKEN_SECONDS,
    scope: 'full',
  };
}
