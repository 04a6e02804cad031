/** Errors of JSON-RPC 2.0 that come before there is a message to answer. */

/** Of the server's own range. */
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
