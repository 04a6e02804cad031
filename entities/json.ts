/** JSON for the database and for digests. Money is bigint, which JSON.stringify refuses. */

/** Returns JSON with each bigint as a string, which PostgreSQL reads as a bigint without a lost digit. */
export const exactJson = (value: unknown): string => JSON.stringify(value, (_, inner) => exact(inner));

/** Returns the same JSON with sorted members, so that equal inputs have equal digests. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : exact(inner),
  );

const exact = (value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

/**
 * Returns a value that JSON.stringify writes as the number with these digits, also above 2^53.
 * @throws SyntaxError if they are no number
 */
export const jsonNumber = (digits: string): unknown =>
  // The types of TypeScript lack this function of Node.
  (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(digits);
