/** The public directory of agents. A slug names an entry; its owner changes it by publishing it again. */
import {
  AGENT_LIFECYCLE,
  AGENT_TERMS,
  Agent,
  type AgentEndpoint,
  type AgentSkill,
  LIST_AGENTS,
  type ListedAgent,
  LOCK_UNLISTED,
  SEARCH_AGENTS,
} from '../entities/agents/agent.ts';
import { ed25519Key } from '../entities/agents/agent-key.ts';
import { find, insert, lock, snake } from '../entities/database/table.ts';
import { constraintOf, type Transaction } from '../entities/database/transaction.ts';
import { ApiError } from '../entities/errors.ts';
import { SECONDS_TO_AN_HOUR_OLD } from '../entities/history/audit.ts';
import { record } from '../entities/history/record.ts';
import { transition } from '../entities/history/transition.ts';
import { isId, newId } from '../entities/ids.ts';
import { Turns } from '../entities/turns.ts';
import { lockOwnAccount } from './accounts/account.ts';
import { requireActive } from './accounts/auth/scope.ts';
import { accountOf, actorOf, type Context, turnOf } from './context.ts';
import { found, limitReached } from './errors.ts';
import { afterCursor, bytesOf, type Page, type PageRequest, pageFrom, pageOfAccount } from './pages.ts';

export { AGENT_STATUSES } from '../entities/agents/agent.ts';
export { thumbprint } from '../entities/agents/agent-key.ts';

/** The most bytes of an entry, as JSON. Strangers read many entries at once. */
const ENTRY_BYTES_MAX = 8 * 1024;
/** The most entries of a page, and the bytes of its rows. Each caller may read this list, so its pages are small. */
const PAGE_MAX = 50;
const PAGE_BYTES_MAX = 64 * 1024;
/** The most entries of a page for a caller without a credential. */
const STRANGERS_PAGE_MAX = 20;

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
 * Adds an entry, or replaces the account's entry of that slug. At the limit, a new entry replaces an unlisted one. The
 * worker verifies a new key or URL. A hidden entry stays hidden. An account can always unlist a listed entry. A
 * suspended account can only unlist an entry.
 * @throws ApiError validation_failed for a slug of another account, an invalid key or a character that deceives readers;
 *   agent_limit_reached; rate_limited; account_suspended
 */
export async function publishAgent(context: Context, { listed, publicKey, ...card }: AgentCard): Promise<Agent> {
  const accountId = accountOf(context);
  const unlisted = !listed && context.viewer?.suspendedFor && (await unlistAgent(context, card.slug));
  if (unlisted) return unlisted;
  requireActive(context.viewer);
  refuseLength('endpoints', card.endpoints, 1, 10);
  refuseLength('skills', card.skills, 0, 20);
  refuseSize(card);
  refuseUnseen(card);
  const keyBytes = publicKey ? ed25519Key(publicKey) : null;
  if (keyBytes === undefined) throw notAKey();
  try {
    return await context.db.transaction(async (tx) => {
      await lockOwnAccount(tx, context);
      // The lock keeps a check from verifying the entry meanwhile.
      const named = await lock(tx, Agent, { slug: card.slug });
      if (named && named.accountId !== accountId) throw slugTaken();
      // Its owner may always unlist what a thief listed. Each time needs a listing, which counts.
      if (listed || named?.status !== 'LISTED') await refuseHaste(context, tx, accountId);
      const existing = named ?? (await unlistedAtLimit(context, tx, accountId));
      const id = existing?.id ?? newId('agt');
      const sameKey = existing?.publicKey && keyBytes && existing.publicKey.equals(keyBytes);
      const verified = Boolean(sameKey && existing.verified && existing.url === card.url);
      const values = {
        ...card,
        version: card.version ?? null,
        providerName: card.providerName ?? null,
        providerUrl: card.providerUrl ?? null,
        documentationUrl: card.documentationUrl ?? null,
        iconUrl: card.iconUrl ?? null,
        skillTerms: [
          ...new Set(card.skills.flatMap(({ id, tags }) => [id, ...tags].map((term) => term.toLowerCase()))),
        ],
        publicKey: keyBytes,
        verified,
      };
      const status = existing?.status === 'HIDDEN' ? 'HIDDEN' : listed ? 'LISTED' : 'UNLISTED';
      const changed = existing && (await transition(tx, AGENT_LIFECYCLE, id, status, { set: values }));
      if (!changed) await insert(tx, Agent, { ...values, id, accountId, status });
      await record(tx, accountId, id, { type: 'agent.updated', actor: actorOf(context) });
      // A check that runs now writes nothing for another key or URL.
      if (!verified && (keyBytes || existing?.publicKey))
        await context.provisioning.agents.verify(tx, { id, accountId });
      return changed ?? (await find(tx, Agent, { id }))!;
    });
  } catch (error) {
    if (constraintOf(error) === 'agent_slug') throw slugTaken();
    throw error;
  }
}

/** Unlists an entry and keeps the rest of it, also for a suspended account. Returns undefined if the account has no such entry. */
const unlistAgent = (context: Context, slug: string): Promise<Agent | undefined> =>
  context.db.transaction(async (tx) => {
    const accountId = await lockOwnAccount(tx, context, 'while suspended');
    const agent = await lock(tx, Agent, { slug, accountId });
    return agent?.status === 'LISTED' ? moveAgent(tx, context, agent, 'UNLISTED') : agent;
  });

/** Hides a listed entry. Only `showAgent` lists it again. @throws ApiError not_found for an entry that is neither listed nor hidden */
export const hideAgent = (context: Context, id: string, reason: string): Promise<Agent> =>
  context.db.transaction(async (tx) => {
    const agent = await shownOrHidden(tx, id);
    return agent.status === 'LISTED' ? moveAgent(tx, context, agent, 'HIDDEN', { reason }) : agent;
  });

/** Lists a hidden entry again. @throws ApiError not_found for an entry that is neither listed nor hidden */
export const showAgent = (context: Context, id: string): Promise<Agent> =>
  context.db.transaction(async (tx) => {
    const agent = await shownOrHidden(tx, id);
    return agent.status === 'HIDDEN' ? moveAgent(tx, context, agent, 'LISTED') : agent;
  });

async function shownOrHidden(tx: Transaction, id: string): Promise<Agent> {
  const agent = found(isId('agt', id) && (await lock(tx, Agent, { id })));
  return found(agent.status !== 'UNLISTED' && agent);
}

/** Moves a locked entry to another state, and records that. */
async function moveAgent(
  tx: Transaction,
  context: Context,
  { id, accountId }: Agent,
  status: Agent['status'],
  data: { reason?: string } = {},
): Promise<Agent> {
  const moved = found(await transition(tx, AGENT_LIFECYCLE, id, status));
  const told = { type: 'agent.updated', actor: actorOf(context), data: { status, ...data } } as const;
  await record(tx, accountId, id, told);
  return moved;
}

/** Returns the entry that a new one replaces; undefined: the account has room for it. @throws ApiError agent_limit_reached */
async function unlistedAtLimit({ limits }: Context, tx: Transaction, accountId: string): Promise<Agent | undefined> {
  if ((await tx.manager.countBy(Agent, { accountId })) < limits.agentEntries) return undefined;
  const unlisted = await LOCK_UNLISTED.first(tx, [accountId]);
  if (!unlisted) throw limitReached('agent_limit_reached', limits.agentEntries);
  return unlisted;
}

/** Each change is kept for webhooks and in the audit log. The caller holds the lock of the account. @throws ApiError rate_limited */
async function refuseHaste({ limits }: Context, tx: Transaction, accountId: string): Promise<void> {
  const most = limits.agentChangesPerHour;
  const seconds = (await SECONDS_TO_AN_HOUR_OLD.first(tx, [accountId, 'agent.updated', most]))?.seconds ?? 0;
  if (seconds <= 0) return;
  throw new ApiError(
    'rate_limited',
    `The directory takes ${most} changes of an account in an hour. Unlist a listed entry, or send it again later.`,
    {
      retryAfter: Math.ceil(seconds),
    },
  );
}

function refuseLength(field: string, list: unknown[], min: number, max: number) {
  if (list.length >= min && list.length <= max) return;
  const [code, limit] = list.length < min ? (['too_few', min] as const) : (['too_many', max] as const);
  const message = `${field} must have ${min} to ${max} entries.`;
  throw new ApiError('validation_failed', undefined, { errors: [{ field, code, message, limit }] });
}

/** Emoji that Unicode recommends. Some have a joiner, a variation selector or tags. */
const EMOJI = /\p{RGI_Emoji}/gv;
/** Characters that deceive a reader: controls, ends of lines, marks of direction, and those without a shape. Descriptions have lines. */
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u;

/**
 * The refusal names the first such character, and its member. The search for emoji takes microseconds for each. So it skips a
 * text without such a character.
 */
function refuseUnseen(value: unknown, path = ''): void {
  if (typeof value === 'object' && value !== null)
    for (const [member, inner] of Object.entries(value)) refuseUnseen(inner, `${path && `${path}.`}${snake(member)}`);
  if (typeof value !== 'string') return;
  const text = path.endsWith('description') ? value.replaceAll('\n', '') : value;
  const character = UNSEEN.test(text) && UNSEEN.exec(text.replace(EMOJI, ''))?.[0];
  if (!character) return;
  const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
  const message = `${path} has the character U+${code}. Controls, ends of lines and invisible characters are refused.`;
  throw new ApiError('validation_failed', undefined, { errors: [{ field: path, code: 'wrong_format', message }] });
}

/** The refusal names the largest member. */
function refuseSize(card: object): void {
  const bytes = bytesOf(card);
  if (bytes <= ENTRY_BYTES_MAX) return;
  const sizes = Object.entries(card).map(([member, value]) => ({
    field: snake(member),
    bytes: bytesOf(value ?? null),
  }));
  const { field } = sizes.reduce((one, other) => (other.bytes > one.bytes ? other : one));
  const message = `The entry has ${bytes} bytes as JSON, and may have at most ${ENTRY_BYTES_MAX}.`;
  throw new ApiError('validation_failed', undefined, {
    errors: [{ field, code: 'too_long', message, limit: ENTRY_BYTES_MAX }],
  });
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

/**
 * A search reads all entries that fit, and a list passes over those of suspended accounts. Anybody may fill the directory. So few
 * reads of it run at once, and leave the processors and connections of PostgreSQL to others. Lists do not wait for searches.
 */
const newTurns = (places: number) =>
  new Turns({
    ...{ places, waiting: 400, waitingOfGroup: 32 },
    refusal: 'Too many reads of the directory wait. Search again later.',
  });
const [lists, searches] = [newTurns(1), newTurns(2)];

/** Returns the listed entries, newest first. A page has at most 50, and 20 for a stranger. Callers share it (`sharedSeconds`). */
export async function searchAgents(
  context: Context,
  asked: PageRequest,
  { q, skill, protocol, verified }: AgentFilter,
): Promise<Page<ListedAgent>> {
  const { db, viewer } = context;
  const limit = Math.min(asked.limit, viewer ? PAGE_MAX : STRANGERS_PAGE_MAX);
  const request = { ...asked, limit, bytesMax: PAGE_BYTES_MAX };
  const filters = { q: q ?? null, skill: skill ?? null, protocol: protocol ?? null, verified: verified ?? null };
  const after = afterCursor(request, filters);
  const terms = [
    ...(skill ? [AGENT_TERMS.skill(skill)] : []),
    ...(protocol ? [AGENT_TERMS.protocol(protocol)] : []),
    ...(verified == null ? [] : [AGENT_TERMS.verified(verified)]),
  ];
  const page = [limit + 1, after, PAGE_BYTES_MAX];
  const isList = filters.q === null && !terms.length;
  const read = () => (isList ? LIST_AGENTS.all(db, page) : SEARCH_AGENTS.all(db, [...page, filters.q, terms]));
  const rows = await (isList ? lists : searches).run(turnOf(context), read, context.signal);
  return pageFrom(rows, request, filters, ({ bytes }) => bytes);
}

/** Returns the entries that the operator has hidden, newest first. */
export const listHiddenAgents = (context: Context, request: PageRequest): Promise<Page<Agent>> =>
  pageOfAccount(context, Agent, request, { status: 'HIDDEN' });
