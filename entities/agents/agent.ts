/** The public directory of agents. Their owners publish the entries; the service does not show the owner. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type Row, type RowOf } from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';

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

/** Owners list and unlist entries. Only the operator hides an entry and shows it again. */
export const AGENT_STATUSES = ['LISTED', 'UNLISTED', 'HIDDEN'] as const;

export const Agent = entity('agent', {
  id: column.key(),
  accountId: column.text(),
  /** Unique over all accounts. */
  slug: column.text(),
  name: column.text(),
  description: column.text(),
  url: column.text(),
  status: column.oneOf(...AGENT_STATUSES),
  version: nullable(column.text()),
  providerName: nullable(column.text()),
  providerUrl: nullable(column.text()),
  documentationUrl: nullable(column.text()),
  iconUrl: nullable(column.text()),
  endpoints: column.json<AgentEndpoint[]>(),
  skills: column.json<AgentSkill[]>(),
  /** Ids and tags of the skills, for the search. */
  skillTerms: column.textArray(),
  /** The 32 bytes of an Ed25519 key. */
  publicKey: nullable(column.bytes()),
  /** Whether the agent's own card names this key. It says nothing about the rest of the entry. */
  verified: defaulting(column.boolean(), 'false'),
  x402: defaulting(column.boolean(), 'false'),
  createdAt: column.now(),
  updatedAt: column.now(),
});
export type Agent = RowOf<typeof Agent>;

/** Publishing an entry again may keep its state. A hidden entry stays hidden until the operator shows it again. */
export const AGENT_LIFECYCLE: Lifecycle<Agent, Agent['status']> = {
  table: Agent,
  key: 'id',
  state: 'status',
  transitions: {
    LISTED: ['LISTED', 'UNLISTED', 'HIDDEN'],
    UNLISTED: ['UNLISTED', 'LISTED'],
    HIDDEN: ['HIDDEN', 'LISTED'],
  },
};

const { skillTerms: _, ...SHOWN } = Agent.columns;
/** An entry without the terms of the search, and with its bytes, about as many as it has as JSON. */
const LISTED = { ...SHOWN, bytes: column.int() };
export type ListedAgent = Row<typeof LISTED>;

/** Selects entries, the newest first, until they have more than $3 bytes together. There are two at least, if two are found. */
const listed = (found: string) => `
  select ${columnsOf(Agent, 'page', ['skillTerms'])}, page.bytes from (
    select *, sum(bytes) over newest - bytes as before, row_number() over newest as number from (
      select *, octet_length(skills::text) + octet_length(endpoints::text) + octet_length(description) + 1024 as bytes
      from agent where ${found}) as sized
    window newest as (order by id desc rows unbounded preceding)) as page
  where before <= $3 or number <= 2 order by id desc`;

/** PostgreSQL reads so many suspended accounts at once, and looks up the others one by one. */
const SUSPENDED_READ = 100_000;
/** Returns the newest $1 listed entries with $3 bytes, of accounts that are not suspended. Their ids are below $2; null for the newest of all. */
export const LIST_AGENTS = statement(LISTED)`${listed(
  `status = 'LISTED' and ($2::text is null or id < $2)
    and account_id not in (select id from account where suspended_at is not null limit ${SUSPENDED_READ})
    and (select suspended_at is null from account where account.id = agent.account_id) order by id desc limit $1`,
)}`;

/** The same with two filters. Each word of the text $4 begins a word of the entry; null for any text. The entry has the terms $5. */
export const SEARCH_AGENTS = statement(LISTED)`${listed(`id = any(array(select search_agents($4, $5, $2, $1)))`)}`;

/** Terms of the function agent_terms: a skill or tag, a protocol of an endpoint, the verification. The index has their keys. */
export const AGENT_TERMS = {
  skill: (skill: string) => `skill:${skill.toLowerCase()}`,
  protocol: (protocol: AgentEndpoint['protocol']) => `protocol:${protocol}`,
  verified: (verified: boolean) => `verified:${verified}`,
};

/** Locks the oldest unlisted entry of the account $1. */
export const LOCK_UNLISTED = statement(Agent.columns)`
  select ${columnsOf(Agent)} from agent where account_id = $1 and status = 'UNLISTED' order by id limit 1 for update`;

/** Writes the verification $4 of the agent $1 if it is new, and URL $2 and key $3 are unchanged. */
export const WRITE_VERIFICATION = statement({ accountId: column.text() })`
  update agent set verified = $4, updated_at = now()
  where id = $1 and url = $2 and public_key = $3 and verified <> $4 returning account_id`;
