/**
 * Limits of sessions: by credential, by account or network, and of the process. A session that gives room still ends its calls
 * that have begun to work. A call that waits for its user's answer has done nothing yet, and ends with its session.
 */
import { createHmac } from 'node:crypto';
import { countedAs, networkOf } from '../../../schema/index.ts';
import type { McpCaller } from '../caller.ts';

const PROCESS_MAX = 2_000;
const CREDENTIAL_MAX = 50;
const ACCOUNT_MAX = 100;

/** The owner of a session. */
export interface Owner {
  /** The credential to which the id of the session is bound. Without one it is empty: strangers may change networks. */
  credential: string;
  /** The name under which its sessions count: all tokens of an OAuth client have one. Empty without a credential. */
  counted: string;
  /** The account, or the network of callers without a credential. Its sessions count together. */
  group: string;
}

export interface Held {
  owner: Owner;
  /** The number of POST requests without a complete response. */
  calls: number;
  /** The number of open streams of updates. A session without one opens again by itself, and loses nothing. */
  streams: number;
  /** The questions to the user whose answer is due. */
  questions: { readonly size: number };
}

type Entry = readonly [id: string, held: Held];

/** The session that gives room at no cost: an idle one, else one whose calls all wait for the user. */
const cheapest = (sessions: readonly Entry[]): string | undefined =>
  (sessions.find(([, { calls }]) => !calls) ??
    sessions.find(([, { calls, questions }]) => calls <= questions.size))?.[0];

/** @param secret for the hash of a network, because no address stays in memory */
export function ownerOf({ viewer, address }: Pick<McpCaller, 'viewer' | 'address'>, secret: Buffer): Owner {
  if (viewer)
    return { credential: viewer.credentialId, counted: countedAs(viewer), group: `account ${viewer.accountId}` };
  const network = createHmac('sha256', secret)
    .update(networkOf(address ?? ''))
    .digest('base64url');
  return { credential: '', counted: '', group: `network ${network}` };
}

/** How a new session finds room: without more, by the end of another session, or not at all. */
export type Room = { evicts?: string } | { refusal: string; status: 429 | 503 };

/**
 * The idle session that gives room to an account, if no group has more sessions than its group would. A larger group still
 * gives room first, and its own counts the new session. So the owner of many sessions ends its own, and none of a smaller group.
 */
function leastIdle({ group }: Owner, all: readonly Entry[]): string | undefined {
  const sizes = new Map<string, number>([[group, 1]]);
  for (const [, { owner }] of all) sizes.set(owner.group, (sizes.get(owner.group) ?? 0) + 1);
  const sizeOf = ([, { owner }]: Entry) => sizes.get(owner.group)!;
  const hasStream = ([, { streams }]: Entry) => Number(streams > 0);
  const before = (a: Entry, b: Entry): boolean => (sizeOf(a) - sizeOf(b) || hasStream(b) - hasStream(a)) >= 0;
  const idle = all.filter(([, { calls }]) => !calls);
  return idle.reduce<Entry | undefined>((first, one) => (first && before(first, one) ? first : one), undefined)?.[0];
}

/**
 * Finds room for a new session of an owner. In a full process, the account or network with most sessions gives room to a
 * smaller one. Next, idle strangers give room, who have no updates to lose, and then any idle session. Strangers take the room
 * of idle strangers first, and never that of an account without more sessions.
 * @param live the least recently used first
 */
export function roomFor(newcomer: Owner, live: ReadonlyMap<string, Held>): Room {
  const { counted, group } = newcomer;
  const all: Entry[] = [...live];
  const within = (max: number, sessions: Entry[]): Room => {
    const evicts = cheapest(sessions);
    return evicts ? { evicts } : { refusal: `You have ${max} sessions, each with a call under way.`, status: 429 };
  };
  const ofCredential = counted ? all.filter(([, { owner }]) => owner.counted === counted) : [];
  if (ofCredential.length >= CREDENTIAL_MAX) return within(CREDENTIAL_MAX, ofCredential);
  const own = all.filter(([, { owner }]) => owner.group === group);
  const groupMax = counted ? ACCOUNT_MAX : CREDENTIAL_MAX;
  if (own.length >= groupMax) return within(groupMax, own);
  if (all.length < PROCESS_MAX) return {};
  const ofLargest = () => {
    const groups = [...Map.groupBy(all, ([, { owner }]) => owner.group).values()];
    const largest = groups.reduce((one, other) => (other.length > one.length ? other : one));
    return largest.length > own.length + 1 ? (cheapest(largest) ?? largest[0]![0]) : undefined;
  };
  const ofIdleStranger = () => all.find(([, { owner, calls }]) => !calls && !owner.counted)?.[0];
  const evicts = counted
    ? (ofLargest() ?? ofIdleStranger() ?? leastIdle(newcomer, all))
    : (ofIdleStranger() ?? ofLargest());
  return evicts ? { evicts } : { refusal: 'The service has no room for another session now.', status: 503 };
}
