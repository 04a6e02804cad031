/** CSV, as spreadsheets read it. */
import { expect, it } from 'vitest';
import { wantsCsv } from '../../../facades/formats/csv.ts';
import { csvLine } from '../../../facades/formats/csv-line.ts';

it.each([
  ...['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', ' =1', '\u0000=1', '\u200b=1', '\ufeff=1', '\u00a0 \u2060=1', '\u3164=1'],
  ...['\uff1d1', '\uff0b1', '\uff0d1', '\uff20A1', '\u3000\uff1d1', '\ufe661', '\u2066-1', '\tplain'],
])('A text that a spreadsheet could run as a formula gets an apostrophe: %j', (text) => {
  expect(csvLine([text])).toBe(`'${text}\r\n`);
});

it('A text with a semicolon stays one cell, also in languages that separate cells by it', () => {
  expect(csvLine(['x;=1+1'])).toBe('"x;=1+1"\r\n');
});

it.each(['Top-up in BTC', ' plain', 'a=b', 'é', '', '𝟏 = 1'])('Other texts stay as they are: %j', (text) => {
  expect(csvLine([text, -1, -1n, null])).toBe(`${text},-1,-1,\r\n`);
});

it('A header Accept of more than a thousand characters asks for JSON', () => {
  expect(wantsCsv('text/csv')).toBe(true);
  expect(wantsCsv(`text/csv${', */*;q=0.1'.repeat(80)}`)).toBe(true);
  expect(wantsCsv(`text/csv${', */*;q=0.1'.repeat(100)}`)).toBe(false);
});
