/** The public directory of agents: what their owners publish of them. The owner is never shown. */
import {
  boolean,
  bytes,
  defaulting,
  entity,
  json,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  textArray,
} from '../database/table.ts';

export interface AgentEndpoint {
  protocol: 'MCP' | 'A2A' | 'HTTP' | 'GRAPHQL';
  url: string;
  protocolVersion?: string | null | undefined;
}
export interface AgentSkill {
  id: string;
  name: string;
  description: string;
  tags: string[];
}

/** Owners list and unlist; what the operator has hidden only the operator shows again. */
export const AGENT_STATUSES = ['LISTED', 'UNLISTED', 'HIDDEN'] as const;

export const Agent = entity(
  'agent',
  {
    id: key(),
    accountId: text(),
    /** Unique over all accounts. */
    slug: text(),
    name: text(),
    description: text(),
    url: text(),
    status: oneOf(...AGENT_STATUSES),
    version: nullable(text()),
    providerName: nullable(text()),
    providerUrl: nullable(text()),
    documentationUrl: nullable(text()),
    iconUrl: nullable(text()),
    endpoints: json<AgentEndpoint[]>(),
    skills: json<AgentSkill[]>(),
    /** Ids and tags of the skills, to be searched. */
    skillTerms: textArray(),
    /** The 32 bytes of an Ed25519 key. */
    publicKey: nullable(bytes()),
    /** Whether the agent's own card names that key. */
    verified: defaulting(boolean(), 'false'),
    x402: defaulting(boolean(), 'false'),
    createdAt: now(),
    updatedAt: now(),
  },
  [
    { name: 'agent_slug', columns: ['slug'], unique: true },
    { name: 'agent_account', columns: ['accountId', 'id'] },
    { name: 'agent_listed', columns: ['id'], where: `status = 'LISTED'` },
  ],
);
export type Agent = RowOf<typeof Agent>;
