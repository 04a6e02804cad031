/**
 * Reads JSON strictly: I-JSON (RFC 7493) in UTF-8, of bounded depth, without what PostgreSQL cannot hold. What cannot be
 * read is 400; what can be read but not kept is 422 and names its place.
 */
import { isUtf8 } from 'node:buffer';
import { ApiError, malformed } from '../../schema/index.ts';

/** How deep objects and lists may stand in one another. */
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
    throw new ApiError('malformed_json', 'The body has a member that is given twice.');
  return value;
}

/** @throws ApiError malformed_json */
export function readUtf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ApiError('malformed_json', 'The body is not valid UTF-8.');
  return bytes.toString();
}

/** Checks depth, texts, numbers and names; answers how many members all the objects have. @throws ApiError */
export function checkJson(value: unknown): number {
  const members = membersOf(value, 0);
  // NaN spreads from whatever is wrong to the sum; the place is looked for only then.
  if (Number.isNaN(members)) throw complaint(value, [], 0);
  return members;
}

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

/** Whether objects and lists stand in one another deeper than that. */
export const deeperThan = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => deeperThan(inner, levels - 1)));

const allowed = (key: string): boolean => key !== '__proto__' && !malformed(key);

/** What is wrong first, and where. */
function complaint(value: unknown, path: string[], depth: number): ApiError | undefined {
  if (typeof value === 'string' && malformed(value)) return refused(path, 'has a character that cannot be stored');
  if (typeof value === 'number' && !Number.isFinite(value)) return refused(path, 'is too large a number');
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === DEPTH_MAX) return new ApiError('malformed_json', `The body is nested deeper than ${DEPTH_MAX} levels.`);
  for (const [key, inner] of Object.entries(value)) {
    if (!allowed(key)) return refused([...path, key.toWellFormed().replaceAll('\0', '�')], 'is no allowed name');
    const found = complaint(inner, [...path, key], depth + 1);
    if (found) return found;
  }
  return undefined;
}

function refused(path: string[], what: string): ApiError {
  const field = path.join('.').slice(0, 200);
  const message = `${field || 'The body'} ${what}.`;
  return new ApiError('validation_failed', message, { errors: [{ field, code: 'wrong_format', message }] });
}

/** How many members a valid JSON text writes down: its colons outside of strings. */
function membersWritten(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x3a) count++;
    else if (char === 0x22) i = endOfString(text, i);
  }
  return count;
}

/** Where a string of a valid JSON text ends: at the next quote that is not escaped. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
}
