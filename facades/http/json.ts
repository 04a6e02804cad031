/**
 * Reads JSON strictly: I-JSON (RFC 7493) in UTF-8, of limited depth and with a limited number of values. Unreadable JSON is
 * 400. A value that PostgreSQL cannot store is 422, and the error names the field.
 */
import { isUtf8 } from 'node:buffer';
import { ApiError, malformed } from '../../schema/index.ts';

/** The most levels of nested objects and lists. */
const DEPTH_MAX = 10;
/**
 * The most values of a text. The largest input, an entry of the directory, has 555. An unknown member costs microseconds in each
 * check, and in memory twenty times the bytes of its text.
 */
const VALUES_MAX = 1_000;
const TOO_MANY = `The body has more than ${VALUES_MAX.toLocaleString('en')} values.`;
const tooDeep = (levels: number) => new ApiError('malformed_json', `The body is nested deeper than ${levels} levels.`);

/** @throws ApiError malformed_json, body_too_large or validation_failed */
export function readJson(bytes: Buffer): unknown {
  const text = readUtf8(bytes);
  const members = measure(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ApiError('malformed_json', `The body is not valid JSON${placeOf(error as Error)}.`);
  }
  if (checkJson(value) !== members) throw new ApiError('malformed_json', 'The body has the same member twice.');
  return value;
}

/** ` at line 1 column 5`, or an empty text, from the message of the engine, which also has parts of the text. */
function placeOf({ message }: Error): string {
  const [, place] = /\((line \d+ column \d+)\)/.exec(message) ?? [];
  if (place) return ` at ${place}`;
  return message.startsWith('Unexpected end') ? ': it ends too early' : '';
}

/** @throws ApiError malformed_json */
export function readUtf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ApiError('malformed_json', 'The body is not valid UTF-8.');
  return bytes.toString();
}

/** Checks depth, texts, numbers and names. @returns the number of members of all objects @throws ApiError */
export function checkJson(value: unknown): number {
  const members = membersOf(value, 0);
  // Only a refused value pays for the second walk, which finds the field.
  if (Number.isNaN(members)) throw firstError(value, [], 0);
  return members;
}

/** Counts members. An invalid value counts NaN, and so the sum is NaN. */
function membersOf(value: unknown, depth: number): number {
  if (typeof value === 'string') return malformed(value) ? Number.NaN : 0;
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value !== 'object' || value === null) return 0;
  if (depth === DEPTH_MAX) return Number.NaN;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += membersOf(item, depth + 1);
    return count;
  }
  for (const key in value)
    count += allowed(key) ? 1 + membersOf((value as Record<string, unknown>)[key], depth + 1) : Number.NaN;
  return count;
}

const allowed = (key: string): boolean => key !== '__proto__' && !malformed(key);

function firstError(value: unknown, path: string[], depth: number): ApiError | undefined {
  if (typeof value === 'string' && malformed(value))
    return fieldError(path, 'has a character that the service cannot store');
  if (typeof value === 'number' && !Number.isFinite(value)) return fieldError(path, 'is too large a number');
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === DEPTH_MAX) return tooDeep(DEPTH_MAX);
  for (const [key, inner] of Object.entries(value)) {
    if (!allowed(key)) return fieldError([...path, key.toWellFormed().replaceAll('\0', '�')], 'is not an allowed name');
    const error = firstError(inner, [...path, key], depth + 1);
    if (error) return error;
  }
  return undefined;
}

function fieldError(path: string[], predicate: string): ApiError {
  const field = path.join('.').slice(0, 200);
  const message = `${field || 'The body'} ${predicate}.`;
  return new ApiError('validation_failed', message, { errors: [{ field, code: 'wrong_format', message }] });
}

/**
 * Measures a text before the service parses it, because parsing many small values takes time and memory.
 * @returns the members of all objects as written: duplicates count twice
 * @throws ApiError malformed_json if it is nested too deep, or body_too_large if it has too many values
 */
export function measure(text: string, levelsMax = DEPTH_MAX): number {
  let [values, members, level] = [1, 0, 0];
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '"') i = endOfString(text, i);
    else if (char === ':') members++;
    else if (char === ',') values++;
    else if (char === '}' || char === ']') level--;
    else if (char === '{' || char === '[') {
      if (++level > levelsMax) throw tooDeep(levelsMax);
      // A filled list or object has one value more than commas.
      if (!isEmptyAt(text, i)) values++;
    }
    if (values > VALUES_MAX) throw new ApiError('body_too_large', TOO_MANY);
  }
  return members;
}

const EMPTY = /[[{][ \t\r\n]*[\]}]/y;
function isEmptyAt(text: string, start: number): boolean {
  EMPTY.lastIndex = start;
  return EMPTY.test(text);
}

/** The position of the quote that ends a string. The end of the text, if no quote does. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
