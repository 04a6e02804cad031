/** Removes audit entries that are older than they are kept. Their ids sort by time, so nothing but the old is read. */

import type { Database } from '../../entities/database/database.ts';
import { AUDIT_DAYS } from '../../entities/history/audit.ts';
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
      const removed = await db.query(
        'delete from audit_entry where id in (select id from audit_entry where id < $1 order by id limit $2) returning 1',
        [before, CHUNK],
      );
      return hop('start', { afterSeconds: removed.length === CHUNK ? 0 : TICK_SECONDS });
    },
  });
