/** JSON for the database and for digests. Numbers of money are bigint, which JSON.stringify refuses. */

/** JSON in which a bigint is a string: PostgreSQL reads that as a bigint, and JavaScript loses no digit. */
export const exactJson = (value: unknown): string => JSON.stringify(value, (_, inner) => exact(inner));

/** The same with sorted members, so that two spellings of one input have one digest. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : exact(inner),
  );

const exact = (value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);
