/**
 * Answers that many callers share. A flood of callers from many addresses or accounts then costs one read in a while. A caller
 * may see what was true a second ago. It sees each earlier change that this process made by a mutation of the same noun. So an
 * order shows in the stock of the catalog within a second.
 */
import { type Context, turnOf } from '../../schema/index.ts';
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

/** An answer that callers share. The first read that ends gives it. */
interface Shared extends PromiseWithResolvers<unknown> {
  /** Aborts when there is an answer. Then the other reads wait for no turn. */
  end: AbortController;
  /** One read for the callers of each turn. So no caller waits for the turn of another. */
  reads: Map<string, Promise<unknown>>;
}

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
  const kept = new Map<string, Shared>();
  return (values, body, context) => {
    const view = JSON.stringify([CHANGES.get(noun), context.viewer !== null, values]);
    const shared = kept.get(view) ?? {
      ...Promise.withResolvers<unknown>(),
      end: new AbortController(),
      reads: new Map(),
    };
    const group = turnOf(context);
    const known = shared.end.signal.aborted ? shared.promise : shared.reads.get(group);
    if (known) return known;
    if (!kept.has(view) && kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value!);
    kept.set(view, shared);
    const forget = () => {
      if (kept.get(view) === shared) kept.delete(view);
    };
    // The caller may go before the others have the answer.
    const signal = AbortSignal.any([context.stopping, shared.end.signal]);
    const read = run(values, body, { ...context, signal });
    read.then(
      (answer) => {
        if (shared.end.signal.aborted) return;
        TEXTS.set(Object(answer), {});
        shared.resolve(answer);
        shared.end.abort();
        setTimeout(forget, seconds * 1_000).unref();
      },
      () => {
        shared.reads.delete(group);
        if (!shared.reads.size && !shared.end.signal.aborted) forget();
      },
    );
    const answer = Promise.race([shared.promise, read]);
    shared.reads.set(group, answer);
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
