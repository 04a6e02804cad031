/** A compiled operation document: a REST endpoint, an MCP tool, an MCP resource, or several of them. */
import type { DocumentNode, OperationDefinitionNode } from 'graphql';
import type { ErrorCode, RequiredScope } from '../../schema/index.ts';
import type { Answer } from './outputs.ts';
import type { Input, Parameter } from './parameters.ts';
import type { Fragments } from './selection.ts';
import type { StyleName } from './styles.ts';

export interface Http {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  status: 'LIVE' | 'PLANNED';
  /** The feature of the configuration that makes a planned endpoint live. */
  feature?: string;
  maxAgeSeconds?: number;
  /** For so long, callers share an answer, which depends on nothing of them but whether they have a credential. */
  sharedSeconds?: number;
  /** The changes that end the sharing of an answer. */
  until?: ('OPERATOR' | 'SERVERS' | 'AGENTS')[];
  style: StyleName;
  /** The member of the answer that callers may also get as a QR code. */
  qr?: string;
  /** Whether callers may have all pages as JSON Lines. */
  lines?: boolean;
  /** The members of the entries that callers may have as CSV, all pages at once. */
  csv?: string[];
  /** Whether callers may have the answer as a page to print. */
  receipt?: boolean;
  /** Whether the endpoint is beside the table of the specification. */
  extension: boolean;
  /** Whether the endpoint takes an idempotency key. */
  keyed: boolean;
  /** Whether the key must be a UUID. */
  uuidKey: boolean;
}

export interface Tool {
  name: string;
  title?: string;
  idempotent?: boolean;
  destructive?: boolean;
  /** Whether the tool takes an idempotency key. */
  keyed?: boolean;
  /** The argument that the caller must confirm. */
  confirm?: string;
  /** A call without this argument asks to pay by x402. */
  paidWithout?: string;
}

/** Serves the answer as an MCP resource. A URI with variables is a template. */
export interface Resource {
  name: string;
  uri: string;
}

/**
 * How a request treats its credential. A `checked` one must be valid. A refused `optional` one counts as none. An `unread`
 * one is not looked up.
 */
export type CredentialUse = 'checked' | 'optional' | 'unread';

export interface Operation extends Fragments {
  name: string;
  /** The name of its file. It is the tag in OpenAPI and the toolset in MCP. */
  noun: string;
  kind: 'query' | 'mutation';
  description: string;
  document: DocumentNode;
  definition: OperationDefinitionNode;
  /** The scopes that a credential needs; empty if the operation is public. */
  scopes: RequiredScope[];
  /** Whether the operation refuses suspended accounts. */
  activeOnly: boolean;
  /** Whether a login may call the operation beside the rate limit of its account. */
  urgent: boolean;
  /** Whether the operation takes a payment by x402. */
  pays: boolean;
  /** Whether the operation may need the second factor: it creates a credential, a webhook's secret or an SSH key. */
  creates: boolean;
  /** The errors that the fields state, beside those of the form and the credential. */
  errors: ErrorCode[];
  parameters: Parameter[];
  input: Input | undefined;
  answer: Answer;
  http: Http | undefined;
  /** The name of the operation that lists what the path names. */
  listedBy?: string;
  tool: Tool | undefined;
  resource: Resource | undefined;
}

/** The kind of change that counts for the limits of an account that never paid; undefined for a read. */
export const changeOf = ({ kind, pays }: Operation): 'change' | 'payment' | undefined =>
  kind === 'mutation' ? (pays ? 'payment' : 'change') : undefined;

/** Whether the answer depends on the viewer. A registration adds an OAuth client to the account of the viewer. */
export const dependsOnViewer = ({ scopes, http }: Operation): boolean =>
  scopes.length > 0 || http?.style === 'OAUTH_REGISTRATION';
