/** The public directory of agents. An entry is found by its slug, and changed by publishing it again. */

import { Agent, type AgentEndpoint, type AgentSkill } from '../entities/agents/agent.ts';
import { ed25519Key } from '../entities/agents/agent-key.ts';
import { columnsOf } from '../entities/database/table.ts';
import { constraintOf } from '../entities/database/transaction.ts';
import { ApiError } from '../entities/errors.ts';
import { record } from '../entities/history/record.ts';
import { newId } from '../entities/ids.ts';
import { lockAccount } from '../entities/payments/ledger.ts';
import { accountOf, actorOf, type Context } from './context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from './pages.ts';

export { AGENT_STATUSES } from '../entities/agents/agent.ts';
export { thumbprint } from '../entities/agents/agent-key.ts';

export interface AgentCard {
  slug: string;
  name: string;
  description: string;
  url: string;
  version?: string | null | undefined;
  providerName?: string | null | undefined;
  providerUrl?: string | null | undefined;
  documentationUrl?: string | null | undefined;
  iconUrl?: string | null | undefined;
  endpoints: AgentEndpoint[];
  skills: AgentSkill[];
  publicKey?: string | null | undefined;
  x402: boolean;
  listed: boolean;
}

/**
 * Adds an entry, or replaces the account's own of that slug. Another key or URL has to be verified anew, and whatever is
 * not verified is looked at again; what the operator has hidden stays hidden.
 * @throws ApiError validation_failed for a slug of another account, or a key that is none; agent_limit_reached
 */
export async function publishAgent(context: Context, { listed, publicKey, ...card }: AgentCard): Promise<Agent> {
  const accountId = accountOf(context);
  refuseLength('endpoints', card.endpoints, 1, 10);
  refuseLength('skills', card.skills, 0, 20);
  const keyBytes = publicKey ? ed25519Key(publicKey) : null;
  if (keyBytes === undefined) throw notAKey();
  try {
    return await context.db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      const existing = await tx.manager.findOneBy(Agent, { slug: card.slug });
      if (existing && existing.accountId !== accountId) throw slugTaken();
      if (!existing && (await tx.manager.countBy(Agent, { accountId })) >= context.limits.agentEntries) {
        throw new ApiError('agent_limit_reached');
      }
      const id = existing?.id ?? newId('agt');
      const sameKey = existing?.publicKey && keyBytes && existing.publicKey.equals(keyBytes);
      const verified = Boolean(sameKey && existing.verified && existing.url === card.url);
      const row: Agent = {
        ...card,
        id,
        accountId,
        version: card.version ?? null,
        providerName: card.providerName ?? null,
        providerUrl: card.providerUrl ?? null,
        documentationUrl: card.documentationUrl ?? null,
        iconUrl: card.iconUrl ?? null,
        skillTerms: [
          ...new Set(card.skills.flatMap(({ id, tags }) => [id, ...tags].map((term) => term.toLowerCase()))),
        ],
        publicKey: keyBytes,
        status: existing?.status === 'HIDDEN' ? 'HIDDEN' : listed ? 'LISTED' : 'UNLISTED',
        verified,
        createdAt: existing?.createdAt ?? new Date(),
        updatedAt: new Date(),
      };
      // What is verified is left to the check, which may be ending it right now.
      await tx.manager.save(Agent, verified ? { ...row, verified: undefined } : row);
      await record(tx, accountId, row.id, { type: 'agent.updated', actor: actorOf(context) });
      // A check of the old card that ends now changes nothing: it names the key and the URL that it has looked at.
      if (!verified && (keyBytes || existing?.publicKey))
        await context.provisioning.agents.verify(tx, { id, accountId });
      return row;
    });
  } catch (error) {
    if (constraintOf(error) === 'agent_slug') throw slugTaken();
    throw error;
  }
}

function refuseLength(field: string, list: unknown[], min: number, max: number) {
  if (list.length >= min && list.length <= max) return;
  const [code, limit] = list.length < min ? (['too_few', min] as const) : (['too_many', max] as const);
  const message = `${field} must have ${min} to ${max} entries.`;
  throw new ApiError('validation_failed', undefined, { errors: [{ field, code, message, limit }] });
}

const slugTaken = () =>
  new ApiError('validation_failed', undefined, {
    errors: [{ field: 'slug', code: 'taken', message: 'slug is taken by another account.' }],
  });

const notAKey = () =>
  new ApiError('validation_failed', undefined, {
    errors: [
      { field: 'public_key', code: 'wrong_format', message: 'public_key must be an Ed25519 key, as JWK or base64.' },
    ],
  });

export interface AgentFilter {
  q?: string | null | undefined;
  skill?: string | null | undefined;
  protocol?: AgentEndpoint['protocol'] | null | undefined;
  verified?: boolean | null | undefined;
}

/** The listed entries, newest first. */
export async function searchAgents(
  { db }: Context,
  request: PageRequest,
  { q, skill, protocol, verified }: AgentFilter,
): Promise<Page<Agent>> {
  const filters = { q: q ?? null, skill: skill ?? null, protocol: protocol ?? null, verified: verified ?? null };
  const after = afterCursor(request, filters);
  const like = q ? `%${q.replace(/[\\%_]/g, '\\$&')}%` : null;
  const rows = await db.query<Agent>(SEARCH, [
    request.limit + 1,
    after,
    like,
    skill?.toLowerCase() ?? null,
    filters.protocol,
    filters.verified,
  ]);
  return pageFrom(rows, request, filters);
}
const SEARCH = `
  select ${columnsOf(Agent)} from agent
  where status = 'LISTED' and ($2::text is null or id < $2)
    and ($3::text is null or name ilike $3 or description ilike $3 or slug ilike $3)
    and ($4::text is null or $4 = any(skill_terms))
    and ($5::text is null or endpoints @> jsonb_build_array(jsonb_build_object('protocol', $5)))
    and ($6::boolean is null or verified = $6)
  order by id desc limit $1`;
