/** Deletes old deliveries, and the snapshots of events that no delivery needs any more. */
import type { Database } from '../../entities/database/database.ts';
import { DELETE_OLD_DELIVERIES, DELETE_UNUSED_SNAPSHOTS } from '../../entities/webhooks/delivery.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const WEBHOOK_RETENTION_PROCESS = 'webhook-retention';
const TICK_SECONDS = 600;
const CHUNK = 5_000;
const DAYS = 30;
/** The ended deliveries of a webhook. */
const ENDED_MAX = 1000;

export const webhookRetentionProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const deleted = await DELETE_OLD_DELIVERIES.all(db, [DAYS, ENDED_MAX, CHUNK]);
      if (deleted.length === CHUNK) return hop('start', { afterSeconds: 0 });
      await DELETE_UNUSED_SNAPSHOTS.all(db);
      return hop('start', { afterSeconds: TICK_SECONDS });
    },
  });
