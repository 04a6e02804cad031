/** Serves the messages of MCP: the SDK, the tools and the sessions. The first message loads this file. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { McpServerFactory } from '@modelcontextprotocol/server';
import type { Authenticate, OnCredentialEnd } from '../compile/run.ts';
import { type Log, scrubbed } from '../http/errors.ts';
import type { View } from './caller.ts';
import type { Secrets } from './confirm.ts';
import { type McpParts, partsOf } from './parts.ts';
import { serverFactory } from './server.ts';
import type { ToolOptions } from './tools.ts';
import { withFewDetails } from './transport/client-details.ts';
import { type Exchange, type ExchangeOptions, exchanger } from './transport/exchange.ts';
import { ProtocolVersions } from './transport/protocol-versions.ts';

export interface ServingOptions extends ToolOptions {
  authenticate: Authenticate;
  /** Without a trailing slash. */
  publicUrl: string;
  /** Sign sessions and questions. The same in every process. */
  mcpSecrets: Secrets;
  onCredentialEnd: OnCredentialEnd;
  /** Receives faults, without any input value. */
  onError: Log;
  onWrite: ExchangeOptions['onWrite'];
  /** Makes the MCP servers. Conformance tests replace the default. */
  factoryOf?: (parts: McpParts) => McpServerFactory;
}

export interface Serving {
  /** @throws ApiError invalid_query */
  viewOf(query: Readonly<Record<string, unknown>>): View;
  /** Answers the messages of a request. */
  serve(request: IncomingMessage, response: ServerResponse, exchange: Exchange): Promise<void>;
  /** Ends the sessions and the streams. */
  close(): Promise<void>;
}

const REFUSALS: ReadonlySet<string> = new Set(['Error', 'ProtocolError']);

export function servingOf(options: ServingOptions): Serving {
  const { onError, onWrite, mcpSecrets: secrets, factoryOf = serverFactory } = options;
  const parts = partsOf({ ...options, secrets });
  // The SDK also reports refused requests. They have their answer, and need no line in the log.
  const report = (error: Error) => !REFUSALS.has(error.name) && onError(scrubbed(error));
  const versions = new ProtocolVersions({ ...options, factory: factoryOf(parts), parts, secrets, onError: report });
  const exchange = exchanger({
    ...versions,
    onError: (error) => onError(scrubbed(error)),
    onWrite,
    fill: parts.lists.prepared.fill,
  });
  return {
    viewOf: (query) => parts.lists.viewOf(query),
    serve: (request, response, { takeBody, ...others }) =>
      exchange(request, response, { ...others, takeBody: () => withFewDetails(takeBody()) }),
    close: () => versions.close(),
  };
}
