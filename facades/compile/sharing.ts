/**
 * Answers that many callers share. A flood of callers, also from many addresses or accounts, then costs one read. An answer
 * lasts until a change that its document names (`until`), at most for its `sharedSeconds`. The bus tells each process of changes.
 * So no answer outlives an act of the operator. It may miss a change by a customer for a second: there are many of these.
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
/** For so long, an answer may miss a change by a customer. It lasts no longer while the bus may miss changes. */
const SOON_MS = 1_000;
/** The text of each shared answer, once it is rendered. */
const TEXTS = new WeakMap<object, { text?: string }>();

/** An answer that callers share. The first read that ends gives it. */
interface Shared extends PromiseWithResolvers<unknown> {
  /** When the first read began. */
  since: number;
  /** The numbers of changes at that time. Those of the first end the answer at once, and those of the second end it soon. */
  counts: [now: number, soon: number];
  /** Aborts when there is an answer. Then the other reads wait for no turn. */
  end: AbortController;
  /** One read for the callers of each turn. So no caller waits for the turn of another. */
  reads: Map<string, Promise<unknown>>;
}

/**
 * Shares the answers of an operation with `sharedSeconds`. They depend on nothing of their callers but whether they have a
 * credential. Callers with a credential and callers without share apart.
 */
export function sharing({ http }: Operation, run: Run): Run {
  if (!http?.sharedSeconds) return run;
  const { sharedSeconds, until = [] } = http;
  const atOnce = until.flatMap((one) => (one === 'SERVERS' ? [] : [KINDS[one]]));
  const soon = until.includes('SERVERS') ? [KINDS.SERVERS] : [];
  const countsOf = ({ bus }: Context['db']): Shared['counts'] => [bus.changesOf(atOnce), bus.changesOf(soon)];
  const isCurrent = ({ since, counts, end }: Shared, db: Context['db']) => {
    const [now, later] = countsOf(db);
    const age = performance.now() - since;
    if (now !== counts[0]) return false;
    if (!end.signal.aborted || age < SOON_MS) return true;
    return age < sharedSeconds * 1_000 && later === counts[1] && db.bus.connected;
  };
  const all = new WeakMap<object, Map<string, Shared>>();
  return (values, body, context) => {
    const { db } = context;
    const kept = all.get(db.bus) ?? new Map<string, Shared>();
    all.set(db.bus, kept);
    const view = JSON.stringify([context.viewer !== null, values]);
    const last = kept.get(view);
    const shared =
      last && isCurrent(last, db)
        ? last
        : {
            ...Promise.withResolvers<unknown>(),
            ...{ since: performance.now(), counts: countsOf(db), end: new AbortController(), reads: new Map() },
          };
    const group = turnOf(context);
    const known = shared.end.signal.aborted ? shared.promise : shared.reads.get(group);
    if (known) return known;
    if (!last && kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value!);
    kept.set(view, shared);
    // The caller may go before the others have the answer.
    const signal = AbortSignal.any([context.stopping, shared.end.signal]);
    const read = run(values, body, { ...context, signal });
    read.then(
      (answer) => {
        if (shared.end.signal.aborted) return;
        TEXTS.set(Object(answer), {});
        shared.resolve(answer);
        shared.end.abort();
      },
      () => {
        shared.reads.delete(group);
        if (!shared.reads.size && !shared.end.signal.aborted && kept.get(view) === shared) kept.delete(view);
      },
    );
    const answer = Promise.race([shared.promise, read]);
    shared.reads.set(group, answer);
    return answer;
  };
}

/** The kinds of changes on the bus, by their names in the documents. */
const KINDS = { OPERATOR: 'operatorEvent', SERVERS: 'server', AGENTS: 'agent' } as const;

/** Renders an answer as JSON, a shared one only once. */
export function jsonOf(answer: unknown): string {
  const shared = TEXTS.get(answer as object);
  if (!shared) return JSON.stringify(answer);
  shared.text ??= JSON.stringify(answer);
  return shared.text;
}
