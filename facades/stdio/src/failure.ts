/** Turns a failed request into a JSON-RPC error with advice for a person. */
import { INTERNAL_ERROR, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';

export interface Failure {
  code: number;
  message: string;
  data?: unknown;
}

/** The endpoint began its answer and did not finish it. */
export const BROKEN_OFF: Failure = {
  code: INTERNAL_ERROR,
  message:
    'The connection to Freehold broke before the answer came. The request may have taken effect: check before you repeat it.',
};

const NOT_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|bad port|UND_ERR_CONNECT_TIMEOUT|ERR_(TLS|SSL)_.*|.*CERT.*)$/;

/** @param endpoint appears in the error without its query, and never with a credential */
export function failureOf(error: unknown, { origin, pathname }: URL, hasKey: boolean): Failure {
  const where = origin + pathname;
  if (error instanceof SdkHttpError) return refused(error, where, hasKey);
  if (error instanceof SdkError && error.code === SdkErrorCode.ClientHttpUnexpectedContent)
    return internal(`${where} does not speak MCP: check FREEHOLD_URL.`);
  const why = causeOf(error);
  // Only a connection that was never made rules out an effect.
  return why?.isConnecting
    ? internal(
        `Cannot reach Freehold at ${where} (${why.why}). The request had no effect: check FREEHOLD_URL, or try again later.`,
      )
    : BROKEN_OFF;
}

function refused({ status, data }: SdkHttpError, where: string, hasKey: boolean): Failure {
  const body = parsed((data as { text?: unknown }).text);
  const own = recordOf(body?.error);
  if (own && typeof own.code === 'number' && typeof own.message === 'string')
    return { code: own.code, message: own.message, ...('data' in own && { data: own.data }) };
  const detail = typeof body?.detail === 'string' ? ` ${body.detail}` : '';
  if (status === 401 && hasKey)
    return internal(`FREEHOLD_API_KEY was refused (HTTP 401).${detail} Make a new key and restart with it.`, status);
  if (status === 404) return internal(`There is no MCP endpoint at ${where}: check FREEHOLD_URL.`, status);
  return internal(`Freehold answered HTTP ${status}.${detail}`, status);
}

const internal = (message: string, status?: number): Failure => ({
  code: INTERNAL_ERROR,
  message,
  ...(status !== undefined && { data: { status } }),
});

interface Cause {
  code?: unknown;
  syscall?: unknown;
  message?: unknown;
  errors?: Cause[];
}

/** Finds the reason in the error that fetch wraps. A port that fetch refuses has a text and no code. */
function causeOf(error: unknown): { isConnecting: boolean; why: string } | undefined {
  const cause = (error as { cause?: Cause } | undefined)?.cause;
  const { code = cause?.code, syscall, message } = cause?.errors?.[0] ?? cause ?? {};
  const why = code ?? message;
  if (typeof why !== 'string') return undefined;
  return { isConnecting: syscall === 'connect' || NOT_CONNECTED.test(why), why };
}

function parsed(text: unknown): Record<string, unknown> | undefined {
  try {
    return typeof text === 'string' ? recordOf(JSON.parse(text)) : undefined;
  } catch {
    return undefined;
  }
}

const recordOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
