/** Text that a person reads in one go: a paragraph, a list item, a table cell, a string. */
export interface Passage {
  /** The line of the file on which the text begins, from 1. */
  line: number;
  /** The raw text; its line breaks are those of the file. */
  text: string;
}

export interface Sentence {
  line: number;
  /** One space between words; code, quotations, addresses and inserted values are one word each. */
  text: string;
}

/** Line `offset` of a text, from 1. */
export const lineAt = (source: string, offset: number): number => source.slice(0, offset).split('\n').length;

/** A full stop after one of these does not end a sentence. */
const ABBREVIATION = /(?:^|[\s(])(?:e\.g|i\.e|vs|cf|approx|incl|no|St|[A-Z])\.$/;

/** The order matters: a link may hold code, and code may hold quotation marks. */
const SINGLE_WORDS: [RegExp, string][] = [
  [/\{@\w+ [^}]*\}/g, '`'],
  [/(`+)[^`]+?\1/g, '`'],
  [/!?\[([^\]]*)\]\([^)]*\)/g, '$1'],
  [/<?\bhttps?:\/\/[^\s>)]+>?/g, '`'],
  [/"[^"]*"|“[^”]*”/g, '`'],
  [/<\/?[a-z][^>]*>/g, ' '],
  [/[*_]{1,2}(?=\S)(\S[^*_]*?|\S)[*_]{1,2}(?!\w)/g, '$1'],
];

/** Replaces what must not be read as English, and keeps the line breaks in their order. */
function simplify(text: string): string {
  return SINGLE_WORDS.reduce(
    (plain, [pattern, word]) =>
      plain.replace(pattern, (whole, ...groups) => {
        const inner = word === '$1' ? String(groups[0]) : word;
        return inner + '\n'.repeat(whole.split('\n').length - inner.split('\n').length);
      }),
    text,
  );
}

/** Splits a passage at full stops, question marks and exclamation marks that white space follows. */
export function sentencesOf({ line, text }: Passage): Sentence[] {
  const plain = simplify(text);
  const sentences: Sentence[] = [];
  let start = 0;
  for (const { index, 0: mark } of [...plain.matchAll(/[.!?…]["'’)\]]*(?=\s|$)/g), { index: plain.length, 0: '' }]) {
    const end = index + mark.length;
    if (end < plain.length && ABBREVIATION.test(plain.slice(start, index + 1))) continue;
    const piece = plain.slice(start, end);
    const words = piece.replace(/\s+/g, ' ').trim();
    const from = start + piece.length - piece.trimStart().length;
    if (/\w|`/.test(words)) sentences.push({ line: line + lineAt(plain, from) - 1, text: words });
    start = end;
  }
  return sentences;
}

/** Counts what is spoken as a word: not dashes, arrows, bullets or signs. */
export const wordsIn = (sentence: string): number =>
  sentence.split(' ').filter((word) => /[\p{L}\p{N}`]/u.test(word)).length;
