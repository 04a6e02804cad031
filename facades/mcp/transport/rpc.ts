/** Errors of JSON-RPC 2.0 before a message reaches a handler. */

import { isRecord } from '../../compile/inputs.ts';

/** The codes of JSON-RPC, without the SDK. The first one is of the range for servers. */
export const [SERVER_ERROR, INVALID_REQUEST, PARSE_ERROR] = [-32_000, -32_600, -32_700];
/** The most characters of a name, a version, a URI or an id that outlives its call. */
export const TEXT_MAX = 200;

export const rpcErrorBody = (code: number, message: string, id: unknown = null, more: object = {}) => ({
  jsonrpc: '2.0',
  error: { code, message, ...more },
  id,
});

/** The id of a body that is one request. Otherwise null, as JSON-RPC requires. */
export const idOf = (body: unknown): unknown =>
  isRecord(body) && (typeof body.id === 'string' || typeof body.id === 'number') ? body.id : null;

export const rpcError = (
  status: number,
  code: number,
  message: string,
  headers: Record<string, string> = {},
  id: unknown = null,
) => Response.json(rpcErrorBody(code, message, id), { status, headers });
