/** Ed25519 keys of agents, as JWK (RFC 8037) or base64. */
import { createHash, createPublicKey } from 'node:crypto';

const KEY_BYTES = 32;
/** A key as JWK has a hundred characters. A card of a stranger may have texts that take long to read. */
const CHARACTERS_MAX = 1_000;

/** Returns the 32 bytes of a key, or undefined if the value is no Ed25519 key. */
export function ed25519Key(given: unknown): Buffer | undefined {
  if (typeof given === 'string' && given.length > CHARACTERS_MAX) return undefined;
  try {
    const jwk = typeof given === 'string' && given.trim().startsWith('{') ? JSON.parse(given) : given;
    const x = typeof jwk === 'string' ? Buffer.from(jwk, 'base64').toString('base64url') : xOf(jwk);
    if (!x) return undefined;
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const bytes = Buffer.from(key.export({ format: 'jwk' }).x!, 'base64url');
    return bytes.length === KEY_BYTES ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the x of an Ed25519 key. Other kinds of keys may have an x, too. */
function xOf(jwk: { kty?: unknown; crv?: unknown; x?: unknown } | null): string | undefined {
  return jwk?.kty === 'OKP' && jwk.crv === 'Ed25519' && typeof jwk.x === 'string' ? jwk.x : undefined;
}

/** Returns the thumbprint of a key (RFC 7638, RFC 8037). */
export const thumbprint = (key: Buffer): string =>
  createHash('sha256')
    .update(`{"crv":"Ed25519","kty":"OKP","x":"${key.toString('base64url')}"}`)
    .digest('base64url');
