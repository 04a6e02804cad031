/**
 * Reads JSON strictly: I-JSON (RFC 7493) in UTF-8, of limited depth. Unreadable JSON is 400. A value that PostgreSQL cannot
 * store is 422, and the error names the field.
 */
import { isUtf8 } from 'node:buffer';
import { ApiError, malformed } from '../../schema/index.ts';

/** The most levels of nested objects and lists. */
const DEPTH_MAX = 10;

/** @throws ApiError malformed_json or validation_failed */
export function readJson(bytes: Buffer): unknown {
  const text = readUtf8(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ApiError('malformed_json');
  }
  if (checkJson(value) !== membersWritten(text))
    throw new ApiError('malformed_json', 'The body has the same member twice.');
  return value;
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

/** Whether objects and lists are nested deeper than `levels`. */
export const deeperThan = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => deeperThan(inner, levels - 1)));

const allowed = (key: string): boolean => key !== '__proto__' && !malformed(key);

function firstError(value: unknown, path: string[], depth: number): ApiError | undefined {
  if (typeof value === 'string' && malformed(value))
    return fieldError(path, 'has a character that the service cannot store');
  if (typeof value === 'number' && !Number.isFinite(value)) return fieldError(path, 'is too large a number');
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === DEPTH_MAX) return new ApiError('malformed_json', `The body is nested deeper than ${DEPTH_MAX} levels.`);
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

/** Counts the members in a valid JSON text: its colons outside of strings. Duplicate names count twice. */
function membersWritten(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x3a) count++;
    else if (char === 0x22) i = endOfString(text, i);
  }
  return count;
}

/** The position of the quote that ends a string of a valid JSON text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
}
