/** Deletes old audit entries. */
import type { Database } from '../../entities/database/database.ts';
import { DELETE_OLD_ENTRIES } from '../../entities/history/audit.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const AUDIT_RETENTION_PROCESS = 'audit-retention';
const TICK_SECONDS = 3600;
const CHUNK = 5_000;

export const auditRetentionProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const found = await DELETE_OLD_ENTRIES.first(db, [CHUNK]);
      return hop('start', { afterSeconds: found!.deleted >= CHUNK ? 0 : TICK_SECONDS });
    },
  });
