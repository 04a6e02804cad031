/**
 * Checks whether an agent's own card names the key of its entry: after each change, and each day. A card without the
 * key ends the verification at once. An unreadable card ends it after several tries.
 */
import { Agent, WRITE_VERIFICATION } from '../../entities/agents/agent.ts';
import { thumbprint } from '../../entities/agents/agent-key.ts';
import type { Database } from '../../entities/database/database.ts';
import { find } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { AGENT_LANE } from '../../entities/tasks/lane.ts';
import type { NewTask } from '../../entities/tasks/start.ts';
import { call, type Outbound } from '../outbound/call.ts';
import { HostPlaces } from '../outbound/host-places.ts';
import { done, hop, type LeasedTask, nap, type Outcome, type Process } from '../tasks/tasks.ts';
import { cardUrl, namedKeys } from './card.ts';

export const AGENT_PROCESS = 'agent';

const CARD_BYTES_MAX = 64 * 1024;
const TIMEOUT_SECONDS = 10;
const DAY_SECONDS = 24 * 3600;
/** Pauses between tries to read a card. After the last one, the card counts as gone. */
const RETRY_SECONDS = [300, 3600, 6 * 3600, 12 * 3600];
const JITTER = 0.1;

export const verificationTask = ({ id, accountId }: Pick<Agent, 'id' | 'accountId'>): NewTask => ({
  lane: AGENT_LANE,
  process: AGENT_PROCESS,
  subject: id,
  accountId,
  step: 'verify',
});

/** Half of the tasks that a worker runs at once. */
const HOST_TASKS_MAX = 16;

export function agentProcess(db: Database, outbound: Outbound): Process {
  const hosts = new HostPlaces(HOST_TASKS_MAX);
  return {
    lane: AGENT_LANE,
    attemptsMax: Number.MAX_SAFE_INTEGER,
    steps: {
      verify: async (task) => {
        const agent = await find(db, Agent, { id: task.subject });
        if (!agent?.publicKey) return done();
        const place = { url: agent.url, account: agent.accountId };
        return hosts.during(place, () => verify(outbound, agent, task), nap);
      },
    },
  };
}

async function verify(outbound: Outbound, agent: Agent, { data, aborted }: LeasedTask): Promise<Outcome> {
  const keys = await keysOf(agent, outbound, aborted);
  const tries = keys ? 0 : Number(data.tries ?? 0) + 1;
  const pause = tries ? RETRY_SECONDS[tries - 1] : DAY_SECONDS;
  const verified = keys ? keys.includes(thumbprint(agent.publicKey!)) : agent.verified && pause !== undefined;
  return hop('verify', {
    afterSeconds: (pause ?? DAY_SECONDS) * (1 - JITTER + Math.random() * 2 * JITTER),
    data: { tries: pause === undefined ? RETRY_SECONDS.length : tries },
    commit: (tx) => keep(tx, agent, verified),
  });
}

/** Returns the thumbprints that the card names, or undefined if the worker cannot read it. */
async function keysOf(
  { url, accountId }: Agent,
  outbound: Outbound,
  aborted: AbortSignal,
): Promise<string[] | undefined> {
  const request = {
    method: 'GET',
    url: cardUrl(url),
    account: accountId,
    headers: { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'Freehold-Agents/1.0' },
    answerBytesMax: CARD_BYTES_MAX,
    timeoutSeconds: TIMEOUT_SECONDS,
    aborted,
  } as const;
  const answer = await call(request, outbound);
  if (typeof answer === 'string' || answer.status !== 200 || !answer.complete) return undefined;
  return namedKeys(Buffer.from(answer.body).toString('utf8'));
}

/** Writes the verification. An entry that changed meanwhile keeps its own, and its task runs again. */
async function keep(tx: Transaction, { id, url, publicKey }: Agent, verified: boolean): Promise<void> {
  const changed = await WRITE_VERIFICATION.first(tx, [id, url, publicKey, verified]);
  if (changed) await record(tx, changed.accountId, id, { type: 'agent.updated', actor: SYSTEM, data: { verified } });
}
