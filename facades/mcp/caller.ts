/** The caller of an MCP request. The SDK passes it to the handlers in `authInfo`. */
import type { AuthInfo, ServerContext } from '@modelcontextprotocol/server';
import type { Viewer } from '../../schema/index.ts';
import type { Caller } from '../compile/run.ts';
import type { Question } from './questions.ts';

/** Counts a call for the rate limits. `message`: its only call. @throws ApiError rate_limited */
export type Count = (viewer: Viewer | null, message?: unknown) => Promise<void>;

/** A message that may reach its handler. */
export interface Admitted {
  /** By the argument `access_token`, otherwise by the header. */
  viewer: Viewer | null;
  /** A tool call answers it as a tool error. */
  refusal?: unknown;
  /** Checks the same credential again, after the call has waited. @throws ApiError if it is no longer valid */
  readmit: () => Promise<Viewer | null>;
}

/** The admitted messages, by the id of JSON-RPC. */
export type Messages = ReadonlyMap<unknown, Admitted>;

/** The choices in the URL of the endpoint: `?toolsets=catalog,servers&readonly=1&text=short`. */
export interface View {
  /** Undefined: all toolsets. */
  toolsets: ReadonlySet<string> | undefined;
  readOnly: boolean;
  /** Whether a line replaces the text of an answer, because the client reads the structured content. */
  shortText: boolean;
}

/** The caller by the Authorization header. */
export interface McpCaller extends Omit<Caller, 'signal'> {
  /** Counts work beyond the first of a message. */
  count: Count;
  messages: Messages;
  view: View;
  /** The questions of its session whose answer is due. Absent without a session. */
  questions?: Set<Question>;
}

export const authInfoOf = (caller: McpCaller): AuthInfo => ({
  token: '',
  clientId: '',
  scopes: [],
  extra: { caller },
});

export const callerOf = (authInfo: AuthInfo | undefined): McpCaller => authInfo!.extra!.caller as McpCaller;

/** The caller of one request. The signal aborts when the client disconnects or cancels the request. */
export const callerIn = ({ http, mcpReq }: ServerContext): McpCaller & Caller => ({
  ...callerOf(http!.authInfo),
  signal: mcpReq.signal,
});
