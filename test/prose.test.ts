/** The test for plain English, wherever a person reads, as far as a program can tell. */
import { describe, expect, it } from 'vitest';
import { findProse, passagesOf, reportOf } from './prose/findings.ts';
import { sentencesOf, wordsIn } from './prose/passage.ts';
import { findingsIn, RULES } from './prose/rules.ts';

const LONG = 'more than 20 words';
const CLAUSE = 'begins with a clause, not with an actor';
const NO_ACTOR = 'names no actor';
const NO_NOUN = 'has a clause without a noun before it';

/** Sentences with all rules that they break. */
const FAULTS: [sentence: string, ...rules: string[]][] = [
  [`${'The worker waits for the next block of its chain and '.repeat(2)}ends.`, LONG],
  ['What is not final yet is waited for.', CLAUSE],
  ['Whoever pays owns it.', NO_ACTOR],
  ['Since when it is gone.', CLAUSE],
  ['Those who wait are answered.', CLAUSE],
  ['That the server is gone.', CLAUSE],
  ['The order waits, and nobody has seen the machine.', NO_ACTOR],
  ['Of what is unknown the service says nothing.', NO_NOUN],
  ['Stops the server; what was committed stays.', NO_NOUN],
  ['This is what a request waits for.', 'points with "is what"'],
  ['Should it come after all, the driver credits it.', 'turns the order of words around'],
  ['A killed service shall start soon.', 'uses an archaic word'],
  ['The operator says that he has removed the machine.', 'calls a person "he"'],
];

const PLAIN = [
  'The worker waits until the block is final.',
  'What happens when a host dies?',
  'The test shows how long it takes, what the driver answered, and who asked.',
  'The token "nobody" and `whoever` stand for users of the system.',
  `Calls ${'`a` '.repeat(6)} [the driver](https://example.com/of/what) with (at most) 20 words.`,
];

const rulesOf = (text: string) =>
  sentencesOf({ line: 1, text })
    .flatMap(findingsIn)
    .map(({ rule }) => rule);

describe('The rules of prose', () => {
  it.each(FAULTS)('find the fault of: %s', (sentence, ...rules) => {
    expect(rulesOf(sentence)).toEqual(rules);
  });

  it('are each tried on a faulty sentence', () => {
    expect(new Set(FAULTS.flatMap(([, ...rules]) => rules))).toEqual(new Set(Object.keys(RULES)));
  });

  it.each(PLAIN)('accept: %s', (sentence) => {
    expect(rulesOf(sentence)).toEqual([]);
  });

  it('divide a text at full stops, and know the line of each sentence', () => {
    expect(sentencesOf({ line: 7, text: 'One, e.g. this.\nIt has 1.5 — or\ntwo "words. Or". Three!' })).toEqual([
      { line: 7, text: 'One, e.g. this.' },
      { line: 8, text: 'It has 1.5 — or two `.' },
      { line: 9, text: 'Three!' },
    ]);
    expect(wordsIn('It has 1.5 — or two `.')).toBe(6);
  });
});

describe('Prose is read in', () => {
  const textsOf = (file: string, source: string) =>
    passagesOf(file, source).map(({ line, text }) => `${line} ${text.replaceAll('\n', ' ')}`);

  it('comments of TypeScript, test titles, errors and log lines', () => {
    const source = [
      '/** Opens it.',
      ' * @param name of the',
      ' *   file */',
      'it("opens a file", () => {',
      '  // One comment',
      '  // of two lines.',
      '  console.log(`$' + '{n} files`);',
      '  throw new FileError("code_only", gone ? "It is gone." : "It " + n);',
      '});',
    ].join('\n');
    expect(textsOf('test/a.test.ts', source).sort()).toEqual([
      '1 Opens it.',
      '2 of the file',
      '4 opens a file',
      '5 One comment of two lines.',
      '7 `x` files',
      '8 It `x`',
      '8 It is gone.',
    ]);
  });

  it('descriptions and whole sentences of the product, but not in its statements', () => {
    const source = [
      "const field = { description: 'one server', sql: 'select one from server' };",
      "const sentence = 'It is gone.';",
    ].join('\n');
    expect(textsOf('schema/a.ts', source).sort()).toEqual(['1 one server', '2 It is gone.']);
  });

  it('descriptions and comments of GraphQL', () => {
    const source = '"""\nOne server.\n"""\nquery Server { # by its name\n  server(name: "not this one") { id }\n}';
    expect(textsOf('facades/operations/a.graphql', source)).toEqual(['2 One server.', '4 by its name']);
  });

  it('Markdown without its code', () => {
    const source = '# Title\n\nOne paragraph\nof two lines.\n- item\n```sh\ncode\n```\n| a | b c |\n|---|---|\n';
    expect(textsOf('docs/a.md', source)).toEqual([
      '1 Title',
      '3 One paragraph of two lines.',
      '5 item',
      '9  a ',
      '9  b c ',
    ]);
  });

  it('comments of scripts, and the words that they print', () => {
    const source = '#!/bin/sh\n# Stops it.\ncount="$#" # their number\necho "stopped $name"\n';
    expect(textsOf('stop', source)).toEqual(['2 Stops it.', '3 their number', '4 stopped `']);
  });
});

describe('The project', () => {
  it('is written in plain English', () => {
    const files = findProse();
    expect(files.reduce((sum, { sentences }) => sum + sentences, 0)).toBeGreaterThan(5_000);
    const found = files.filter(({ findings }) => findings.length);
    expect(found, `\n${reportOf(found, 50)}\nList all with: npx node test/prose/findings.ts [path …]\n`).toHaveLength(
      0,
    );
  });
});
