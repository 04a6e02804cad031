/**
 * Answers to strangers that many of them share. A flood of strangers from many addresses then costs one read in a while. A
 * stranger may see what was true a second ago.
 */
import type { Operation } from '../compile/operation.ts';
import type { RunOnce } from './idempotency.ts';

/** The most answers of an operation that are kept. Strangers can ask for any number of pages. */
const KEPT_MAX = 64;

/** Shares the answers of an operation with `sharedSeconds` among callers without a credential. */
export function sharing({ http }: Operation, run: RunOnce): RunOnce {
  const seconds = http?.sharedSeconds;
  if (!seconds) return run;
  const kept = new Map<string, ReturnType<RunOnce>>();
  return (key, values, body, context) => {
    if (context.viewer) return run(key, values, body, context);
    const view = JSON.stringify(values);
    const known = kept.get(view);
    if (known) return known;
    // The caller may go before the others have the answer. It is at the turn of none of their sites.
    const answer = run(key, values, body, { ...context, address: null, signal: context.stopping });
    const forget = () => {
      if (kept.get(view) === answer) kept.delete(view);
    };
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value!);
    kept.set(view, answer);
    answer.then(() => setTimeout(forget, seconds * 1_000).unref(), forget);
    return answer;
  };
}
