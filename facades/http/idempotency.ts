/** Idempotency keys: the header Idempotency-Key of POST, PATCH and DELETE, and an argument of some MCP tools. */
import {
  ApiError,
  type Context,
  countedAs,
  EXPECTED,
  requireRepeatedStepUp,
  requireStepUp,
} from '../../schema/index.ts';
import { aliasing, isRecord } from '../compile/inputs.ts';
import { dependsOnViewer, type Operation } from '../compile/operation.ts';
import { type Parameter, readsCredential } from '../compile/parameters.ts';
import type { Run, Values } from '../compile/run.ts';
import { jsonOf } from '../compile/sharing.ts';

/** Does the work once for each key, and commits its changes together with the answer. */
export type Once = (
  request: KeyedRequest,
  work: (db: Context['db'], keyDigest: Context['keyDigest']) => Promise<string>,
) => Promise<{ answer: string; replayed: boolean; sameCode: boolean }>;

interface KeyedRequest {
  accountId: string | null;
  /** The login, API key or OAuth client that asks. */
  owner: string | null;
  method: string;
  path: string;
  key: string;
  input: unknown;
  /** Whether the input has the password of the account. */
  hasPassword: boolean;
  /** The code of the second factor. */
  code: string | undefined;
}

/** Runs an operation and returns its answer as JSON. With a key, the operation runs once. */
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
    'Makes the request safe to repeat for 24 hours. A repeated request has no further effect and returns the first answer. Use 1 to 255 visible ASCII characters, and a new key for each new request.',
  [EXPECTED]: '1 to 255 visible ASCII characters, without spaces. Example: order-1',
} as const;

const PASSWORDS: ReadonlySet<string> = new Set(['password', 'current_password']);
const KEY = /^[!-~]{1,255}$/;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** The key of a request; undefined if it has none. @throws ApiError invalid_header */
export function keyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header === 'string' && KEY.test(header)) return header;
  throw wrongKey('Idempotency-Key must be 1 to 255 visible ASCII characters.');
}

const wrongKey = (message: string) =>
  new ApiError('invalid_header', message, { errors: [{ field: 'Idempotency-Key', code: 'wrong_format', message }] });

/** Whether the endpoint accepts keys. It does not if it checks the credential itself, since no viewer separates the keys. */
export const takesKey = ({ http, parameters }: Operation): boolean =>
  http !== undefined && http.method !== 'GET' && http.keyed && !parameters.some(readsCredential);

/** Separates the code of the second factor from a body. */
function withoutCode(body: unknown): { code: string | undefined; rest: unknown } {
  const { totp_code: code, ...rest } = (body ?? {}) as Values;
  return typeof code === 'string' && code ? { code, rest } : { code: undefined, rest: body ?? null };
}

export function runnerOnce(operation: Operation, run: Run, once: Once | undefined): RunOnce {
  const { http, tool, parameters, creates } = operation;
  const unalias = operation.input && aliasing(operation.input.type);
  // Two strangers may send the same key and input, and must not get each other's client secret.
  const isRegistration = http?.style === 'OAUTH_REGISTRATION';
  const method = http?.method ?? 'TOOL';
  const template = http?.path ?? tool!.name;
  const inPath = new Map(parameters.filter(isIn('path')).map(({ name, variable }) => [name, variable]));
  const inQuery = parameters.filter(isIn('query')).map(({ variable }) => variable);
  const runToJson = async (values: Values, body: unknown, context: Context) => jsonOf(await run(values, body, context));
  return async (key, values, body, context) => {
    // A refresh ends the credential of its own request, so that must not separate the keys.
    const viewer = dependsOnViewer(operation) ? context.viewer : null;
    if (key === undefined || !once || (isRegistration && !viewer))
      return { answer: await runToJson(values, body, context), replayed: false };
    if (http?.uuidKey && !UUID.test(key))
      throw wrongKey('The answer has a secret, so the Idempotency-Key must be a random UUID.');
    // The code may have another name.
    if (unalias && isRecord(body)) unalias(body);
    const { code, rest } = creates ? withoutCode(body) : { code: undefined, rest: body ?? null };
    // A kept answer shows its secret again.
    if (creates && !code) await requireStepUp(context, null);
    const request = {
      accountId: viewer && (viewer.accountId ?? viewer.kind),
      // An answer may have secrets.
      owner: viewer && countedAs(viewer),
      method,
      path: template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(values[inPath.get(name)!]))),
      key,
      // The input excludes headers, because a repeated request may carry another payment.
      input: [inQuery.map((variable) => values[variable] ?? null), rest],
      hasPassword: Object.keys(rest ?? {}).some((name) => PASSWORDS.has(name)),
      code,
    };
    const headers: Record<string, string> = {};
    const setHeader = (header: string, value: string) => {
      headers[header] = value;
      context.setHeader?.(header, value);
    };
    const {
      answer: stored,
      replayed,
      sameCode,
    } = await once(request, async (db, keyDigest) =>
      withHeaders(headers, await runToJson(values, body, { ...context, db, keyDigest, setHeader })),
    );
    if (replayed && code) await requireRepeatedStepUp(context, code, sameCode);
    const answer = readStored(stored);
    if (replayed) for (const [header, value] of Object.entries(answer.headers)) context.setHeader?.(header, value);
    return { answer: answer.body, replayed };
  };
}

const isIn =
  (location: Parameter['in']) =>
  (parameter: Parameter): boolean =>
    parameter.in === location;

/** The stored text. If the operation set headers, such as the receipt of a payment, they precede the answer as a line. */
const withHeaders = (headers: Record<string, string>, body: string): string =>
  Object.keys(headers).length ? `${JSON.stringify(headers)}\n${body}` : body;

/** Splits a stored text at its first line break. Compact JSON has none. */
function readStored(stored: string): { headers: Record<string, string>; body: string } {
  const end = stored.indexOf('\n');
  if (end < 0) return { headers: {}, body: stored };
  return { headers: JSON.parse(stored.slice(0, end)), body: stored.slice(end + 1) };
}
