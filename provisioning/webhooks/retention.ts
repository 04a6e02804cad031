/** Deletes old deliveries, and the snapshots of events that no delivery needs any more. */
import type { Database } from '../../entities/database/database.ts';
import { idFloor } from '../../entities/ids.ts';
import { DELETE_OLD_DELIVERIES, DELETE_OLD_SNAPSHOTS } from '../../entities/webhooks/delivery.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const WEBHOOK_RETENTION_PROCESS = 'webhook-retention';
const TICK_SECONDS = 600;
const CHUNK = 5_000;
const DAYS = 30;
/** The ended deliveries of a webhook. */
const ENDED_MAX = 1000;
/** The process looks for too many at webhooks whose deliveries ended in the last two ticks. */
const BUSY_SECONDS = 2 * TICK_SECONDS;
/** A delivery of the last day may be repeated for some days more. */
const SNAPSHOT_MS = (DAYS + 10) * 86_400_000;

export const webhookRetentionProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const deleted = [
        await DELETE_OLD_DELIVERIES.all(db, [DAYS, ENDED_MAX, CHUNK, BUSY_SECONDS]),
        await DELETE_OLD_SNAPSHOTS.all(db, [idFloor('evt', Date.now() - SNAPSHOT_MS), CHUNK]),
      ];
      return hop('start', { afterSeconds: deleted.some(({ length }) => length === CHUNK) ? 0 : TICK_SECONDS });
    },
  });
