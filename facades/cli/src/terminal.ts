/** Writes to the terminal. Answers of a service may have characters that command a terminal, or that turn its lines around. */

const COMMANDING = /[\p{Cc}\p{Bidi_Control}]/gu;
const KEPT: ReadonlySet<string> = new Set(['\n', '\t']);

/** The text with such characters as `\u001b`. In JSON, they mean the same. */
export const harmless = (text: string): string =>
  text.replace(COMMANDING, (one) => (KEPT.has(one) ? one : `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`));

/** Writes a result to the standard output. */
export const write = (text: string): void => console.log(harmless(text));
/** Writes a remark to the standard error output. */
export const say = (text: string): void => console.error(harmless(text));
