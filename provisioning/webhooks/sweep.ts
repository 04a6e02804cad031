/**
 * Wakes webhooks with forgotten deliveries: a process may die between its commit and its wakeup. Fails waiting deliveries
 * beyond a limit, and erases secrets that sign no more.
 */
import type { Database } from '../../entities/database/database.ts';
import { FAIL_OLDEST_WAITING, FORGOTTEN_WEBHOOKS } from '../../entities/webhooks/delivery.ts';
import { wakeWebhooks } from '../../entities/webhooks/outbox.ts';
import { ERASE_PREVIOUS_SECRETS } from '../../entities/webhooks/webhook.ts';
import { REST_SECONDS_MAX } from '../outbound/host-places.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const WEBHOOK_SWEEP_PROCESS = 'webhook-sweep';
const TICK_SECONDS = 10;
/** The waiting deliveries of a webhook. */
const WAITING_MAX = 1000;

export const webhookSweepProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      await FAIL_OLDEST_WAITING.all(db, [WAITING_MAX]);
      const forgotten = await FORGOTTEN_WEBHOOKS.all(db, [TICK_SECONDS, REST_SECONDS_MAX]);
      await wakeWebhooks(
        db,
        db.bus,
        forgotten.map(({ id }) => id),
      );
      await ERASE_PREVIOUS_SECRETS.all(db);
      return hop('start', { afterSeconds: TICK_SECONDS });
    },
  });
