/** Records the expiry of proposals. They end by the clock, even if no worker runs. A restore ends all. */
import type { Database } from '../../entities/database/database.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { transition } from '../../entities/history/transition.ts';
import { lockOperator } from '../../entities/payments/ledger.ts';
import { LIST_OPEN_PROPOSALS, LIST_OVER_PROPOSALS, PROPOSAL_LIFECYCLE } from '../../entities/proposal.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const PROPOSAL_EXPIRY_PROCESS = 'proposal-expiry';
const TICK_SECONDS = 300;

export const proposalExpiryProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      for (const { id } of await LIST_OVER_PROPOSALS.all(db)) await expire(db, id);
      return hop('start', { afterSeconds: TICK_SECONDS });
    },
  });

/** Ends all open proposals. @returns their ids */
export async function expireProposals(db: Database): Promise<string[]> {
  const open = await LIST_OPEN_PROPOSALS.all(db, [null]);
  for (const { id } of open) await expire(db, id);
  return open.map(({ id }) => id);
}

const expire = (db: Database, id: string): Promise<void> =>
  db.transaction(async (tx) => {
    await lockOperator(tx);
    if (!(await transition(tx, PROPOSAL_LIFECYCLE, id, 'EXPIRED'))) return;
    await record(tx, OPERATOR_ACCOUNT, id, { type: 'proposal.updated', actor: SYSTEM, data: { state: 'EXPIRED' } });
  });
