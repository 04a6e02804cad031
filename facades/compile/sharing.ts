/**
 * Answers that many callers share. A flood of callers from many addresses or accounts then costs one read in a while. A caller
 * may see what was true a second ago, but sees each earlier change of this process.
 */
import type { Context } from '../../schema/index.ts';
import type { Operation } from './operation.ts';

/**
 * Runs an operation. `values` are the parameters by variable, and `body` the fields of the input object.
 * @throws ApiError for the caller; any other error is a fault
 */
export type Run = (values: Record<string, unknown>, body: unknown, context: Context) => Promise<unknown>;

/** The most answers of an operation that are kept. Callers can ask for any number of pages. */
const KEPT_MAX = 64;
/** How often mutations of each noun have changed something. */
const CHANGES = new Map<string, number>();
/** The text of each shared answer, once it is rendered. */
const TEXTS = new WeakMap<object, { text?: string }>();

/**
 * Shares the answers of an operation with `sharedSeconds`. They depend on nothing of their callers but whether they have a
 * credential. Callers with a credential and callers without share apart.
 */
export function sharing(operation: Operation, run: Run): Run {
  const { kind, noun, http } = operation;
  if (kind === 'mutation')
    return async (values, body, context) => {
      const answer = await run(values, body, context);
      endSharing(operation);
      return answer;
    };
  const seconds = http?.sharedSeconds;
  if (!seconds) return run;
  const kept = new Map<string, Promise<unknown>>();
  return (values, body, context) => {
    const view = JSON.stringify([CHANGES.get(noun), context.viewer !== null, values]);
    const known = kept.get(view);
    if (known) return known;
    // The caller may go before the others have the answer. It is read at the turn of this caller.
    const answer = run(values, body, { ...context, signal: context.stopping });
    const forget = () => {
      if (kept.get(view) === answer) kept.delete(view);
    };
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value!);
    kept.set(view, answer);
    answer.then((shared) => {
      TEXTS.set(Object(shared), {});
      setTimeout(forget, seconds * 1_000).unref();
    }, forget);
    return answer;
  };
}

/** Ends the sharing of answers that a mutation has changed. Call it after the commit. */
export function endSharing({ noun }: Operation): void {
  CHANGES.set(noun, (CHANGES.get(noun) ?? 0) + 1);
}

/** Renders an answer as JSON, a shared one only once. */
export function jsonOf(answer: unknown): string {
  const shared = TEXTS.get(answer as object);
  if (!shared) return JSON.stringify(answer);
  shared.text ??= JSON.stringify(answer);
  return shared.text;
}
