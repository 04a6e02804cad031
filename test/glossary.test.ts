/** docs/glossary.md explains the words of the project, at least those in the names of files and folders. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const glossary = readFileSync('docs/glossary.md', 'utf8');
const [terms = '', plain = ''] = glossary.split('## Words without an entry');

const entries = [...terms.matchAll(/^- \*\*([^*]+)\*\*: ([\s\S]+?)(?=\n- |\n\n|$)/gm)].map(([, term, meaning]) => ({
  term: term!,
  meaning: meaning!.replace(/\s+/g, ' ').trim(),
}));
const plainWords = [...plain.matchAll(/^```\n([\s\S]+?)\n```$/gm)].flatMap(([, words]) => words!.split(/\s+/));

/** The words of a name: `provisioning/top-ups/settle.ts` has `provisioning`, `top`, `ups`, `settle` and `ts`. */
const wordsOf = (name: string) => name.toLowerCase().match(/[a-z][a-z0-9]*/g) ?? [];
/** A word with its possible singulars. */
const singulars = (word: string) => [word, word.replace(/s$/, ''), word.replace(/es$/, ''), word.replace(/ies$/, 'y')];

const names = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => file && existsSync(file));
const used = new Set(names.flatMap(wordsOf));
const explained = new Set(entries.flatMap(({ term }) => wordsOf(term).flatMap(singulars)));

describe('The glossary', () => {
  it('explains each word in the names of files and folders, unless it lists the word as plain', () => {
    const known = new Set([...explained, ...plainWords]);
    expect([...used].filter((word) => !singulars(word).some((one) => known.has(one))).sort()).toEqual([]);
  });

  it('lists only plain words that a name has, each once and without an entry of its own', () => {
    const inNames = new Set([...used].flatMap(singulars));
    const terms = new Set(entries.map(({ term }) => term));
    expect(plainWords.filter((word) => !inNames.has(word) || terms.has(word))).toEqual([]);
    expect(plainWords).toEqual([...new Set(plainWords)]);
  });

  it('has one meaning for each term, in one or two sentences and in alphabetical order', () => {
    const found = entries.map(({ term }) => term.toLowerCase());
    expect(found.length).toBeGreaterThan(100);
    expect(found).toEqual([...new Set(found)].sort((a, b) => a.localeCompare(b, 'en')));
    const long = entries.filter(({ meaning }) => (meaning.match(/[.!?](\s|$)/g) ?? []).length > 2);
    expect(long.map(({ term }) => term)).toEqual([]);
  });
});
