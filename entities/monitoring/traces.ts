/**
 * Spans around requests, steps of tasks, and calls of drivers and webhooks. collector.ts sends them. Without a collector,
 * `traced` only does its work. Names and attributes are names of the code or of the configuration, numbers, and the ids of
 * requests and tasks. No value comes from a caller.
 */

export type Attributes = Readonly<Record<string, string | number>>;
/** A request that we answer, our own work, or a call to another side. */
export type SpanKind = 'server' | 'internal' | 'client';

/** A span under way. The process sends it after its end. */
export interface Span {
  /** Does the work within the span. Spans of the work are its children. */
  within<T>(work: () => T): T;
  note(attributes: Attributes): void;
  /** Ends the span, and may give it a better name. */
  end(ended?: { name?: string; failed?: boolean }): void;
}

/** The place of a new span: below the present one, or apart from it and perhaps below a kept request. */
export type Below = 'present' | { request: string | undefined };

export interface Tracer {
  open(kind: SpanKind, name: string, below: Below): Span;
  /** The request of the present work, in the form of W3C's `traceparent`. */
  request(): string | undefined;
}

let tracer: Tracer | undefined;

/** Sets the tracer of this process. */
export const traceBy = (given: Tracer): void => {
  tracer = given;
};

const NO_SPAN: Pick<Span, 'note'> = { note: () => {} };

/**
 * Does the work within a span, which ends with it. A span fails if its work does.
 * @param below where the span belongs: by default it is a child of the present one
 */
export function traced<T>(
  kind: SpanKind,
  name: string,
  work: (span: Pick<Span, 'note'>) => T,
  below: Below = 'present',
): T {
  if (!tracer) return work(NO_SPAN);
  const span = tracer.open(kind, name, below);
  return span.within(() => {
    const answer = work(span);
    if (!(answer instanceof Promise)) return answer;
    answer.then(
      () => span.end(),
      () => span.end({ failed: true }),
    );
    return answer;
  });
}

/** Returns a function that opens the span of a request, or undefined if this process sends no spans. */
export function requestSpans(): (() => Span) | undefined {
  const known = tracer;
  return known && (() => known.open('server', 'request', 'present'));
}

/** The data that a new task keeps, so that its steps join the request that started it. */
export function tracedData(data: object): object {
  const request = tracer?.request();
  return request ? { ...data, traceparent: request } : data;
}

/** The steps of a task leave the trace of its request after this time. A task may live for years. */
const JOINING_MS = 3_600_000;

/** Returns the place of the spans of a task. */
export function placeOfTask(task: { data: Readonly<Record<string, unknown>>; createdAt: Date; now(): Date }): Below {
  if (!tracer) return 'present';
  const { traceparent } = task.data;
  const joins = typeof traceparent === 'string' && task.now().getTime() - task.createdAt.getTime() < JOINING_MS;
  return { request: joins ? traceparent : undefined };
}
