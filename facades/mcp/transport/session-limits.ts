/**
 * Limits of sessions: by credential, by account or network, and of the process. A session with a call under way makes no
 * room. So a newcomer costs no caller an answer.
 */
import { createHmac } from 'node:crypto';
import { networkOf } from '../../../schema/index.ts';
import type { McpCaller } from '../caller.ts';

const PROCESS_MAX = 2_000;
const CREDENTIAL_MAX = 50;
const ACCOUNT_MAX = 100;

/** The owner of a session. */
export interface Owner {
  /** The credential to which the id of the session is bound. Without one it is empty: strangers may change networks. */
  credential: string;
  /** The account, or the network of callers without a credential. Its sessions count together. */
  group: string;
}

export interface Held {
  owner: Owner;
  /** The number of POST requests without a complete response. */
  calls: number;
}

/** @param secret for the hash of a network, because no address stays in memory */
export function ownerOf({ viewer, address }: Pick<McpCaller, 'viewer' | 'address'>, secret: Buffer): Owner {
  if (viewer) return { credential: viewer.credentialId, group: `account ${viewer.accountId}` };
  const network = createHmac('sha256', secret)
    .update(networkOf(address ?? ''))
    .digest('base64url');
  return { credential: '', group: `network ${network}` };
}

/** How a new session finds room: without more, by the end of an idle session, or not at all. */
export type Room = { evicts?: string } | { refusal: string; status: 429 | 503 };

/**
 * Finds room for a new session of an owner. In a full process, idle sessions of strangers give room first. They have no
 * updates to lose, and open again by themselves. Accounts with more sessions than the newcomer's come next.
 * @param live the least recently used first
 */
export function roomFor({ credential, group }: Owner, live: ReadonlyMap<string, Held>): Room {
  const all = [...live];
  const idle = (chosen: (owner: Owner) => boolean) => all.find(([, { owner, calls }]) => !calls && chosen(owner))?.[0];
  const own = all.filter(([, { owner }]) => owner.group === group).length;
  const within = (max: number, chosen: (owner: Owner) => boolean): Room => {
    const evicts = idle(chosen);
    return evicts ? { evicts } : { refusal: `You have ${max} sessions, each with a call under way.`, status: 429 };
  };
  const isSame = (owner: Owner) => owner.credential === credential;
  if (credential && all.filter(([, { owner }]) => isSame(owner)).length >= CREDENTIAL_MAX)
    return within(CREDENTIAL_MAX, isSame);
  const groupMax = credential ? ACCOUNT_MAX : CREDENTIAL_MAX;
  if (own >= groupMax) return within(groupMax, (owner) => owner.group === group);
  if (all.length < PROCESS_MAX) return {};
  const sizes = Map.groupBy(all, ([, { owner }]) => owner.group);
  const evicts =
    idle((owner) => !owner.credential) ??
    (credential ? idle((owner) => sizes.get(owner.group)!.length > own + 1) : undefined);
  return evicts ? { evicts } : { refusal: 'The service has no room for another session now.', status: 503 };
}
