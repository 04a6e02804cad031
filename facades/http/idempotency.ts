/** Idempotency-Key: on every POST, PATCH and DELETE, and an argument of the tools that name it. */
import { ApiError, type Context } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';
import { readsCredential } from '../compile/parameters.ts';
import type { Run, Values } from '../compile/run.ts';

/** Does the work once for a key, over a database whose changes are committed together with the answer. */
export type Once = (
  request: { accountId: string | null; method: string; path: string; key: string; input: unknown },
  work: (db: Context['db']) => Promise<string>,
) => Promise<{ answer: string; replayed: boolean }>;

/** Runs an operation and answers its JSON; with a key, once. */
export type RunOnce = (
  key: string | undefined,
  values: Values,
  body: unknown,
  context: Context,
) => Promise<{ answer: string; replayed: boolean }>;

export const KEY_HEADER = 'idempotency-key';
export const REPLAYED_HEADER = 'idempotency-replayed';
export const KEY_SCHEMA = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[!-~]*$',
  description:
    'Makes the request safe to send again for 24 hours: it has its effect once, and is answered with its first answer. 1 to 255 visible ASCII characters; take a new one for each intention.',
} as const;

const KEY = /^[!-~]{1,255}$/;

/** The key of a request; undefined if it has none. @throws ApiError invalid_header */
export function keyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header === 'string' && KEY.test(header)) return header;
  const message = 'Idempotency-Key must be 1 to 255 visible ASCII characters.';
  throw new ApiError('invalid_header', message, {
    errors: [{ field: 'Idempotency-Key', code: 'wrong_format', message }],
  });
}

/** Whether the endpoint honours keys. One that reads the credential itself does not: its answer is one client's alone. */
export const takesKey = ({ http, parameters }: Operation): boolean =>
  http !== undefined && http.method !== 'GET' && !parameters.some(readsCredential);

export function runnerOnce(operation: Operation, run: Run, once: Once | undefined): RunOnce {
  const { http, tool, parameters } = operation;
  // What a stranger registers is all that tells him from another: the same key and input may be somebody else's.
  const strangersAlike = http?.style === 'OAUTH_REGISTRATION';
  const method = http?.method ?? 'TOOL';
  const template = http?.path ?? tool!.name;
  const inPath = new Map(parameters.filter((one) => one.in === 'path').map(({ name, variable }) => [name, variable]));
  const inQuery = parameters.filter((one) => one.in === 'query').map(({ variable }) => variable);
  const simply = async (values: Values, body: unknown, context: Context) =>
    JSON.stringify(await run(values, body, context));
  return async (key, values, body, context) => {
    const { viewer } = context;
    if (key === undefined || !once || (strangersAlike && !viewer))
      return { answer: await simply(values, body, context), replayed: false };
    const request = {
      accountId: viewer && (viewer.accountId ?? viewer.kind),
      method,
      path: template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(values[inPath.get(name)!]))),
      key,
      // Headers are left out: a request is paid for again with another payment.
      input: [inQuery.map((variable) => values[variable] ?? null), body ?? null],
    };
    const headers: Record<string, string> = {};
    const setHeader = (header: string, value: string) => {
      headers[header] = value;
      context.setHeader?.(header, value);
    };
    const { answer: kept, replayed } = await once(request, async (db) =>
      withHeaders(headers, await simply(values, body, { ...context, db, setHeader })),
    );
    const answer = readKept(kept);
    if (replayed) for (const [header, value] of Object.entries(answer.headers)) context.setHeader?.(header, value);
    return { answer: answer.body, replayed };
  };
}

/** What is kept: the answer, and before it, on a line of its own, the headers that it set, such as the receipt of a payment. */
const withHeaders = (headers: Record<string, string>, body: string): string =>
  Object.keys(headers).length ? `${JSON.stringify(headers)}\n${body}` : body;

/** JSON has no line breaks within. */
function readKept(kept: string): { headers: Record<string, string>; body: string } {
  const end = kept.indexOf('\n');
  return end < 0 ? { headers: {}, body: kept } : { headers: JSON.parse(kept.slice(0, end)), body: kept.slice(end + 1) };
}
