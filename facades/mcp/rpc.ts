/** Errors of JSON-RPC 2.0 before a message reaches a handler. */

/** A code of the range that JSON-RPC reserves for servers. */
export const SERVER_ERROR = -32_000;

export const rpcErrorBody = (code: number, message: string, id: unknown = null) => ({
  jsonrpc: '2.0',
  error: { code, message },
  id,
});

export const rpcError = (
  status: number,
  code: number,
  message: string,
  headers: Record<string, string> = {},
  id: unknown = null,
) => Response.json(rpcErrorBody(code, message, id), { status, headers });
