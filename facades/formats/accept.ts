/** The header Accept (RFC 9110, section 12.5.1). */
import Negotiator from 'negotiator';

/** Browsers send 150 characters. A header with thousands of types takes ten milliseconds, so a longer one asks for JSON. */
const CHARACTERS_MAX = 1000;

/** Returns the type among these that the header prefers to JSON; undefined if it prefers JSON. */
export function preferredType<Type extends string>(
  accept: string | undefined,
  ...types: readonly Type[]
): Type | undefined {
  if (accept === undefined || accept.length > CHARACTERS_MAX) return undefined;
  const preferred = new Negotiator({ headers: { accept } }).mediaType(['application/json', ...types]);
  return types.find((type) => type === preferred);
}
