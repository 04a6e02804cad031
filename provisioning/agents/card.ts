/**
 * The keys that an agent's own card names. A2A defines the card, but no member for a bare key, so three places count:
 * - `publicKey` (or `public_key`): an Ed25519 JWK (RFC 8037), or the key in base64;
 * - `jwks.keys`: a set of JWKs (RFC 7517);
 * - `signatures` (A2A, RFC 7515): `jwk`, or `kid` if it is a thumbprint (RFC 7638), of the protected header.
 * Freehold does not verify signatures: the card from the agent's own URL over TLS only has to name the key.
 */
import { ed25519Key, thumbprint } from '../../entities/agents/agent-key.ts';

/** The most keys, and the most signatures, of a card that Freehold reads. */
const KEYS_MAX = 20;
const CARD_PATH = '/.well-known/agent-card.json';

/** Returns the URL of an agent's card. It lies below the path of the agent's URL, so that many agents can share a host. */
export function cardUrl(agentUrl: string): string {
  const url = URL.parse(agentUrl);
  if (!url) return agentUrl;
  url.search = '';
  url.hash = '';
  // Only the first of several slashes begins a match, so many of them take no longer than their number.
  url.pathname = url.pathname.replace(/(?<!\/)\/+$/, '') + CARD_PATH;
  return url.href;
}

/** Returns the thumbprints of the keys that a card names, or undefined if the card is no JSON object. */
export function namedKeys(card: string): string[] | undefined {
  let found: unknown;
  try {
    found = JSON.parse(card);
  } catch {
    return undefined;
  }
  if (!isObject(found)) return undefined;
  const given = [
    found.publicKey,
    found.public_key,
    ...(isObject(found.jwks) ? listOf(found.jwks.keys) : []),
    ...listOf(found.signatures).map((signature) => headerOf(signature).jwk),
  ];
  const thumbprints = given.map(ed25519Key).map((key) => key && thumbprint(key));
  const kids = listOf(found.signatures).map((signature) => headerOf(signature).kid);
  return [...thumbprints, ...kids].filter((one) => typeof one === 'string');
}

/** Returns the protected header of a signature, or an empty object without one. */
function headerOf(signature: unknown): Record<string, unknown> {
  if (!isObject(signature) || typeof signature.protected !== 'string') return {};
  try {
    const header = JSON.parse(Buffer.from(signature.protected, 'base64url').toString('utf8'));
    return isObject(header) ? header : {};
  } catch {
    return {};
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(0, KEYS_MAX) : []);
