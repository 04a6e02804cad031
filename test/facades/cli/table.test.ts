/** The tables of the command line, which fit the terminal. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Columns, tableOf } from '../../../facades/cli/src/output.ts';

interface Key {
  id: string;
  age_days: number;
  note: string | null;
}
const COLUMNS: Columns<Key> = { id: (one) => one.id, age_days: (one) => one.age_days, note: (one) => one.note };
const KEYS: Key[] = [
  { id: 'key_1', age_days: 12, note: 'It deploys the website at night.' },
  { id: 'key_22', age_days: 3, note: null },
];

describe('A table of the command line', () => {
  it('has all columns where the terminal has room', () => {
    expect(tableOf(KEYS, COLUMNS, Number.POSITIVE_INFINITY)).toEqual({
      text: [
        'ID      AGE DAYS  NOTE',
        'key_1   12        It deploys the website at night.',
        'key_22  3         -',
      ].join('\n'),
      cut: [],
    });
  });

  it('shortens the column that has not enough room, or leaves it out with those after it, and names them', () => {
    const shorter = tableOf(KEYS, COLUMNS, 40);
    expect(shorter.text).toContain('key_1   12        It deploys the websit…\n');
    expect(shorter.cut).toEqual(['NOTE']);
    expect(tableOf(KEYS, COLUMNS, 20)).toEqual({
      text: 'ID      AGE DAYS\nkey_1   12\nkey_22  3',
      cut: ['NOTE'],
    });
  });

  it('is never wider than the terminal, unless its first column is', () => {
    const cell = fc.string({ maxLength: 40 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cell, cell, cell), { minLength: 1 }),
        fc.integer({ min: 42, max: 140 }),
        (rows, width) => {
          const columns: Columns<[string, string, string]> = {
            a: (row) => row[0],
            b: (row) => row[1],
            c: (row) => row[2],
          };
          for (const line of tableOf(rows, columns, width).text.split('\n'))
            expect(line.length).toBeLessThanOrEqual(width);
        },
      ),
    );
  });
});
