/** Deletes the uses of addresses that ended long ago, and cases that closed long ago. */
import { DELETE_OLD_CASES } from '../../entities/accounts/abuse-case.ts';
import type { Database } from '../../entities/database/database.ts';
import { DELETE_OLD_ADDRESS_USES } from '../../entities/servers/ip-address.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const HISTORY_RETENTION_PROCESS = 'history-retention';
const TICK_SECONDS = 3600;
const CHUNK = 5_000;

export const historyRetentionProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const deleted = [await DELETE_OLD_ADDRESS_USES.all(db, [CHUNK]), await DELETE_OLD_CASES.all(db, [CHUNK])];
      return hop('start', { afterSeconds: deleted.some(({ length }) => length === CHUNK) ? 0 : TICK_SECONDS });
    },
  });
