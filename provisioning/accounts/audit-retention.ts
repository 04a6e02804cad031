/** Deletes old audit entries. Their ids sort by time, so the worker reads only the old ones. */
import type { Database } from '../../entities/database/database.ts';
import { AUDIT_DAYS, DELETE_OLD_ENTRIES } from '../../entities/history/audit.ts';
import { idFloor } from '../../entities/ids.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const AUDIT_RETENTION_PROCESS = 'audit-retention';
const TICK_SECONDS = 3600;
const CHUNK = 5_000;
const DAY_MS = 86_400_000;

export const auditRetentionProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const before = idFloor('aud', Date.now() - AUDIT_DAYS * DAY_MS);
      const deleted = await DELETE_OLD_ENTRIES.all(db, [before, CHUNK]);
      return hop('start', { afterSeconds: deleted.length === CHUNK ? 0 : TICK_SECONDS });
    },
  });
