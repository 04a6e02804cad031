/** Compares answers of two versions: an API that only grows keeps each member, and each thing of a list. */

/** Members that a later moment changes. */
const MOVING =
  /^(status|expired|last_used_at|next_cursor|has_more|funded_until|last_delivery|next_attempt_at|issued_at|to)$/;

/** Returns what the later answer lacks, as paths of its members. */
export function lacking(earlier: unknown, later: unknown, path = ''): string[] {
  if (Array.isArray(earlier)) {
    const all = Array.isArray(later) ? later : [];
    return earlier.flatMap((one, i) => {
      const differences = all.map((other) => lacking(one, other, `${path}[${i}]`));
      return differences.sort((a, b) => a.length - b.length)[0] ?? [`${path}[${i}] is missing`];
    });
  }
  if (earlier === null || typeof earlier !== 'object')
    return earlier === later ? [] : [`${path}: ${JSON.stringify(earlier)} became ${JSON.stringify(later)}`];
  return Object.entries(earlier).flatMap(([name, value]) => {
    const now = (later as Record<string, unknown> | null | undefined)?.[name];
    if (now === undefined) return [`${path}.${name} is missing`];
    return MOVING.test(name) ? [] : lacking(value, now, `${path}.${name}`);
  });
}
