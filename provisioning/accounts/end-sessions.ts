/** Ends the sessions of operators that are over by the clock, with the WebSockets that they have opened. */
import type { Database } from '../../entities/database/database.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { DELETE_OVER_SESSIONS } from '../../entities/operator.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const OPERATOR_SESSION_PROCESS = 'operator-sessions';
const TICK_SECONDS = 60;

export const operatorSessionProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      await db.transaction(async (tx) => {
        const over = await DELETE_OVER_SESSIONS.all(tx);
        tx.changedAll(over.map(({ id }) => ({ kind: 'credential', accountId: OPERATOR_ACCOUNT, id })));
      });
      return hop('start', { afterSeconds: TICK_SECONDS });
    },
  });
