/** A compiled operation document: a REST endpoint, an MCP tool, an MCP resource, or several of them. */
import type { DocumentNode, OperationDefinitionNode } from 'graphql';
import type { RequiredScope } from '../../schema/index.ts';
import type { Answer } from './outputs.ts';
import type { Input, Parameter } from './parameters.ts';
import type { Fragments } from './selection.ts';
import type { StyleName } from './styles.ts';

export interface Http {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  status: 'LIVE' | 'PLANNED';
  maxAgeSeconds?: number;
  style: StyleName;
  /** The member of the answer that is answered as a QR code, too. */
  qr?: string;
}

export interface Tool {
  name: string;
  title?: string;
  idempotent?: boolean;
  destructive?: boolean;
  /** It takes an idempotency key. */
  keyed?: boolean;
  /** The argument that has to be confirmed. */
  confirm?: string;
  /** The argument without which it is paid for by x402. */
  paidWithout?: string;
}

/** The answer can be read as an MCP resource; a URI that names variables is a template. */
export interface Resource {
  name: string;
  uri: string;
}

export interface Operation extends Fragments {
  name: string;
  /** The file that it stands in, which groups it in OpenAPI. */
  noun: string;
  kind: 'query' | 'mutation';
  description: string;
  document: DocumentNode;
  definition: OperationDefinitionNode;
  /** What the credential needs; empty if the operation is public. */
  scopes: RequiredScope[];
  /** It is refused to suspended accounts. */
  activeOnly: boolean;
  parameters: Parameter[];
  input: Input | undefined;
  answer: Answer;
  http: Http | undefined;
  tool: Tool | undefined;
  resource: Resource | undefined;
}
