/**
 * Checks whether an agent's own card names the key that its entry in the directory has: when the entry changed, and then
 * each day. A card that names another key ends the verification at once; one that cannot be read does so if it stays so.
 */
import type { Agent } from '../../entities/agents/agent.ts';
import { thumbprint } from '../../entities/agents/agent-key.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { call, type Outbound } from '../outbound/call.ts';
import { done, hop, type LeasedTask, type NewTask, type Outcome, type Process } from '../tasks/tasks.ts';
import { cardUrl, namedKeys } from './card.ts';

export const AGENT_LANE = 'agents';
export const AGENT_PROCESS = 'agent';

const CARD_BYTES_MAX = 64 * 1024;
const TIMEOUT_SECONDS = 10;
const DAY_SECONDS = 24 * 3600;
/** The pauses between tries to read a card; after them it counts as gone. */
const RETRY_SECONDS = [300, 3600, 6 * 3600, 12 * 3600];
const JITTER = 0.1;

export const verificationTask = ({ id, accountId }: Pick<Agent, 'id' | 'accountId'>): NewTask => ({
  lane: AGENT_LANE,
  process: AGENT_PROCESS,
  subject: id,
  accountId,
  step: 'verify',
});

export const agentProcess = (db: Database, outbound: Outbound): Process => ({
  lane: AGENT_LANE,
  attemptsMax: Number.MAX_SAFE_INTEGER,
  steps: { verify: (task) => verify(db, outbound, task) },
});

type Verified = Pick<Agent, 'id' | 'url' | 'publicKey' | 'verified'>;

async function verify(db: Database, outbound: Outbound, { subject, data, aborted }: LeasedTask): Promise<Outcome> {
  const [agent] = await db.query<Verified>('select id, url, public_key, verified from agent where id = $1', [subject]);
  if (!agent?.publicKey) return done();
  const keys = await keysOf(agent, outbound, aborted);
  const tries = keys ? 0 : Number(data.tries ?? 0) + 1;
  const pause = tries ? RETRY_SECONDS[tries - 1] : DAY_SECONDS;
  const verified = keys ? keys.includes(thumbprint(agent.publicKey)) : agent.verified && pause !== undefined;
  return hop('verify', {
    afterSeconds: (pause ?? DAY_SECONDS) * (1 - JITTER + Math.random() * 2 * JITTER),
    data: { tries: pause === undefined ? RETRY_SECONDS.length : tries },
    commit: (tx) => keep(tx, agent, verified),
  });
}

/** The thumbprints that the card names; undefined if there is none to be read. */
async function keysOf({ url }: Verified, outbound: Outbound, aborted: AbortSignal): Promise<string[] | undefined> {
  const request = {
    method: 'GET',
    url: cardUrl(url),
    headers: { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'Freehold-Agents/1.0' },
    answerBytesMax: CARD_BYTES_MAX,
    timeoutSeconds: TIMEOUT_SECONDS,
    aborted,
  } as const;
  const answer = await call(request, outbound);
  if (typeof answer === 'string' || answer.status !== 200 || !answer.complete) return undefined;
  return namedKeys(answer.body.toString('utf8'));
}

/** An entry that was changed meanwhile keeps what it has: its own task runs again. */
async function keep(tx: Transaction, { id, url, publicKey }: Verified, verified: boolean): Promise<void> {
  const [changed] = await tx.query<{ accountId: string }>(
    `update agent set verified = $4, updated_at = now()
      where id = $1 and url = $2 and public_key = $3 and verified <> $4 returning account_id`,
    [id, url, publicKey, verified],
  );
  if (!changed) return;
  const happening = { type: 'agent.updated', actor: SYSTEM, data: { verified } } as const;
  await record(tx, changed.accountId, id, happening);
}
