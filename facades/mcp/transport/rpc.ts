/** Errors of JSON-RPC 2.0 before a message reaches a handler. */

import { isRecord } from '../../compile/inputs.ts';

/** A code of the range that JSON-RPC reserves for servers. */
export const SERVER_ERROR = -32_000;

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
