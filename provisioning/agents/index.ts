/** The process that verifies the keys of agents. */
import type { Agent } from '../../entities/agents/agent.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { AGENT_LANE, freeLane } from '../../entities/tasks/lane.ts';
import { startTask } from '../../entities/tasks/start.ts';
import type { Outbound } from '../outbound/call.ts';
import type { WorkerPart } from '../tasks/tasks.ts';
import { AGENT_PROCESS, agentProcess, verificationTask } from './verify.ts';

export class Agents implements WorkerPart {
  readonly #db: Database;
  readonly #outbound: Outbound;
  readonly lanes = {
    [AGENT_LANE]: { places: 4, perParty: 2, waiting: 28 },
    [freeLane(AGENT_LANE)]: { places: 4, perParty: 2, waiting: 20 },
  };
  readonly periodic = [];

  constructor(db: Database, outbound: Outbound) {
    this.#db = db;
    this.#outbound = outbound;
  }

  get processes() {
    return { [AGENT_PROCESS]: agentProcess(this.#db, this.#outbound) };
  }

  /** Lets a worker compare the agent's own card with the key of its entry: now, and each day. */
  verify(tx: Transaction, agent: Pick<Agent, 'id' | 'accountId'>): Promise<void> {
    return startTask(tx, verificationTask(agent));
  }
}
