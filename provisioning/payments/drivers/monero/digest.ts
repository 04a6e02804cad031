/** Digest authentication (RFC 7616) as Monero's programs require it: MD5, qop auth. */
import { createHash, randomBytes } from 'node:crypto';

export interface Login {
  user: string;
  password: string;
}

/** The parts of a server's challenge that the answer needs. */
export interface Challenge {
  realm: string;
  nonce: string;
}

/** The MD5 challenge among the values of WWW-Authenticate. Monero also sends one for MD5-sess. */
export function challengeOf(values: readonly string[]): Challenge | undefined {
  const value = values.find((one) => /^Digest\b/i.test(one) && !/algorithm="?MD5-sess/i.test(one)) ?? '';
  const [, realm] = /\brealm="([^"]*)"/i.exec(value) ?? [];
  const [, nonce] = /\bnonce="([^"]*)"/i.exec(value) ?? [];
  return realm === undefined || nonce === undefined ? undefined : { realm, nonce };
}

/** The header Authorization. @param count the uses of the nonce, including this one */
export function digestOf(
  { user, password }: Login,
  { realm, nonce }: Challenge,
  { method, path, count }: { method: string; path: string; count: number },
): string {
  const cnonce = randomBytes(8).toString('hex');
  const nc = count.toString(16).padStart(8, '0');
  const secret = md5(`${user}:${realm}:${password}`);
  const response = md5(`${secret}:${nonce}:${nc}:${cnonce}:auth:${md5(`${method}:${path}`)}`);
  return `Digest username="${user}", realm="${realm}", nonce="${nonce}", uri="${path}", algorithm=MD5, qop=auth, nc=${nc}, cnonce="${cnonce}", response="${response}"`;
}

const md5 = (text: string): string => createHash('md5').update(text).digest('hex');
