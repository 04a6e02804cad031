/**
 * Wakes webhooks whose deliveries were forgotten: a process may die between its commit and its wake-up.
 */
import type { Database } from '../../entities/database/database.ts';
import { wakeWebhooks } from '../../entities/webhooks/outbox.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const WEBHOOK_SWEEP_PROCESS = 'webhook-sweep';
const TICK_SECONDS = 10;

export const webhookSweepProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const forgotten = await db.query<{ id: string }>(FORGOTTEN, [TICK_SECONDS]);
      await wakeWebhooks(
        db,
        db.bus,
        forgotten.map(({ id }) => id),
      );
      return hop('start', { afterSeconds: TICK_SECONDS });
    },
  });

/** Those whose deliveries were never tried, and whose task does not run and will not run soon. */
const FORGOTTEN = `
  select distinct webhook_id as id from webhook_delivery
  where status = 'PENDING' and created_at < now() - $1 * interval '1 second'
    and not exists (
      select from task where subject = webhook_id and state = 'READY'
        and (leased_by is not null or run_at <= now() + $1 * interval '1 second'))`;
