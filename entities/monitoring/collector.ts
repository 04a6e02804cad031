/**
 * Sends the spans of this process to a collector, by OTLP over HTTP. Only a service with OTEL_EXPORTER_OTLP_ENDPOINT loads this
 * module. A batch waits for some seconds. While the collector is away, up to 2,048 spans wait, and others are lost.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as api from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { log } from './log.ts';
import { type Below, type Span, type SpanKind, type Tracer, traceBy } from './traces.ts';

export interface CollectorOptions {
  /** The URL of the collector, without `/v1/traces`. */
  endpoint: string;
  /** The headers of each message to it, such as a credential. */
  headers: Record<string, string>;
  sampler: string;
  /** The part of the traces that a sampler by ratio keeps. */
  ratio: number;
  /** The attributes of this process. */
  resource: Record<string, string>;
}

/** The time of the last message at the end of the process. */
const LAST_MS = 3_000;
/** One warning tells of all losses of a minute. */
const WARNING_MS = 60_000;
const KINDS = {
  server: api.SpanKind.SERVER,
  internal: api.SpanKind.INTERNAL,
  client: api.SpanKind.CLIENT,
};
const FAILED = { code: api.SpanStatusCode.ERROR };

interface Here {
  context: api.Context;
  /** The request of the work, if it is one. */
  request: string | undefined;
}

/** Starts to send spans. @returns a function that sends the last ones */
export function sendSpans({ endpoint, headers, sampler, ratio, resource }: CollectorOptions): () => Promise<void> {
  const warn = warner();
  const logger = { error: warn, warn, info: () => {}, debug: () => {}, verbose: () => {} };
  api.diag.setLogger(logger, { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true });
  const provider = new TracerProvider({
    sampler: samplerOf(sampler, ratio),
    resource: defaultResource().merge(
      resourceFromAttributes({ 'service.version': version(), 'service.instance.id': randomUUID(), ...resource }),
    ),
    spanProcessors: [
      new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, headers }) }),
    ],
  });
  traceBy(tracerOf(provider.getTracer('freehold')));
  return async () => {
    const last = provider.shutdown().catch(() => {});
    await Promise.race([last, sleep(LAST_MS, undefined, { ref: false })]);
  };
}

/** The version of this program. */
const version = (): string =>
  JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8')).version;

function samplerOf(name: string, ratio: number): Sampler {
  if (name.startsWith('parentbased_'))
    return new ParentBasedSampler({ root: samplerOf(name.slice('parentbased_'.length), ratio) });
  if (name === 'traceidratio') return new TraceIdRatioBasedSampler(ratio);
  return name === 'always_off' ? new AlwaysOffSampler() : new AlwaysOnSampler();
}

function tracerOf(tracer: api.Tracer): Tracer {
  const here = new AsyncLocalStorage<Here>();
  const parentOf = (below: Below): api.Context =>
    below === 'present'
      ? (here.getStore()?.context ?? api.ROOT_CONTEXT)
      : api.trace.setSpanContext(api.ROOT_CONTEXT, spanContextOf(below.request) ?? api.INVALID_SPAN_CONTEXT);
  const open = (kind: SpanKind, name: string, below: Below): Span => {
    const parent = parentOf(below);
    const span = tracer.startSpan(name, { kind: KINDS[kind] }, parent);
    const request =
      kind === 'server' ? textOf(span.spanContext()) : below === 'present' ? here.getStore()?.request : undefined;
    const store = { context: api.trace.setSpan(parent, span), request };
    return {
      within: (work) => here.run(store, work),
      note: (attributes) => void span.setAttributes(attributes),
      end: ({ name, failed } = {}) => {
        if (name) span.updateName(name);
        if (failed) span.setStatus(FAILED);
        span.end();
      },
    };
  };
  return { open, request: () => here.getStore()?.request };
}

/** The form of W3C's `traceparent`. */
const textOf = ({ traceId, spanId, traceFlags }: api.SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;

function spanContextOf(text = ''): api.SpanContext | undefined {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (!traceId || !spanId || !flags) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

/** Makes a function that warns of a loss. */
function warner(): (problem: string) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (problem) => {
    if (performance.now() - warnedAt < WARNING_MS) return;
    warnedAt = performance.now();
    log.warn(
      { reason: reasonOf(problem) },
      'Spans did not reach the collector of OTEL_EXPORTER_OTLP_ENDPOINT. Some are lost.',
    );
  };
}

/** The words of the packages, which write errors as JSON. An answer of the collector stays out of the log. */
function reasonOf(problem: string): string {
  try {
    const { message, code } = JSON.parse(problem) as { message?: string; code?: string };
    return `${message ?? ''} ${code ?? ''}`.trim();
  } catch {
    return problem.slice(0, 200);
  }
}
