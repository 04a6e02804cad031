/** Suggestions for misspelled names. */

/** ` Did you mean name?`, or an empty text if no candidate is similar. */
export function suggestion(name: string, candidates: readonly string[]): string {
  let best: string | undefined;
  let least = Math.max(2, Math.floor(name.length * 0.4)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) >= least) continue;
    const distance = levenshtein(name.toLowerCase(), candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best === undefined ? '' : ` Did you mean ${best}?`;
}

/** The number of inserted, deleted and changed letters between two words. */
function levenshtein(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}
