/** The words of callers: other names of fields and parameters. An error names a field as the caller wrote it. */
import { ApiError, apiErrorOf, type ErrorCode } from '../../schema/index.ts';

type Members = Record<PropertyKey, unknown>;

/** The ends of a range of time. An operation has one word of each pair, and understands both. */
const ENDS: Readonly<Record<string, string>> = { since: 'from', from: 'since', until: 'to', to: 'until' };

/** The fields that a caller wrote by another word. JSON and GraphQL do not see the symbol. */
const WRITTEN = Symbol('written');

const wordsIn = (input: unknown) => ((input as Members | undefined)?.[WRITTEN] ?? new Map()) as Map<string, string>;

/** Notes that the caller wrote the field by that word. */
export function noteWord(input: object, field: string, word: string): void {
  const written = wordsIn(input);
  written.set(field, word);
  (input as Members)[WRITTEN] = written;
}

/** The parameter that a word means; undefined if it means none. @param names the parameters of the operation */
export const meantByWord = (word: string, names: ReadonlyMap<string, unknown>): string | undefined =>
  names.has(word) ? word : names.has(ENDS[word] ?? '') ? ENDS[word] : undefined;

/** @throws ApiError if the caller wrote both words of one parameter */
export function refuseBoth(input: object, word: string, field: string, code: ErrorCode): void {
  if (word === field || !Object.hasOwn(input, field)) return;
  const message = `${word} means ${field}. Send one of them.`;
  throw new ApiError(code, message, { errors: [{ field: word, code: 'not_allowed', message }] });
}

/** The error with the caller's words for the fields that the inputs name. */
export function inTheirWords(error: unknown, ...inputs: unknown[]): unknown {
  const written = inputs.flatMap((input) => [...wordsIn(input)]);
  const known = written.length ? apiErrorOf(error) : undefined;
  if (!known) return error;
  const worded = (text: string) =>
    written.reduce(
      (sentence, [field, word]) => sentence.replace(fieldAt(field), (_, before = '') => `${before}${word}`),
      text,
    );
  const { errors, ...extras } = known.extras;
  return new ApiError(known.code, worded(known.message), {
    ...extras,
    ...(errors && {
      errors: errors.map((one) => ({ ...one, field: worded(one.field), message: worded(one.message) })),
    }),
  });
}

/** A field where sentences of errors have it: at their beginning, or after "There is no". */
const fieldAt = (field: string) => new RegExp(`^(There is no )?${field}\\b`);
