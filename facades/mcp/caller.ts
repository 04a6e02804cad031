/** Who calls, as it travels through the SDK, which hands `authInfo` to the handlers untouched. */
import type { AuthInfo, ServerContext } from '@modelcontextprotocol/server';
import type { Viewer } from '../../schema/index.ts';
import type { Caller } from '../compile/run.ts';

/** Counts a call of that viewer. @throws ApiError rate_limited */
export type Count = (viewer: Viewer | null) => Promise<void>;

/** What the URL of the endpoint asks to see: `?toolsets=catalog,servers&readonly=1`. */
export interface View {
  /** Undefined: all. */
  toolsets: ReadonlySet<string> | undefined;
  readOnly: boolean;
}

/** The viewer is that of the Authorization header. */
export interface McpCaller extends Omit<Caller, 'signal'> {
  count: Count;
  view: View;
}

export const authInfoOf = (caller: McpCaller): AuthInfo => ({
  token: '',
  clientId: '',
  scopes: [],
  extra: { caller },
});

export const callerOf = (authInfo: AuthInfo | undefined): McpCaller => authInfo!.extra!.caller as McpCaller;

/** The caller of one request, with the signal that ends when the client is gone or has cancelled it. */
export const callerIn = ({ http, mcpReq }: ServerContext): McpCaller & Caller => ({
  ...callerOf(http!.authInfo),
  signal: mcpReq.signal,
});
