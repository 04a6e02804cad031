/**
 * Writes the deliveries of a public event to the webhooks of all accounts, in batches. Accounts that have paid come first, because
 * free accounts can have many webhooks.
 */
import type { Database } from '../../entities/database/database.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import type { EventType } from '../../entities/history/event.ts';
import type { NewTask } from '../../entities/tasks/start.ts';
import { deliveriesFor, INSERT_DELIVERIES, NEXT_LISTENERS } from '../../entities/webhooks/outbox.ts';
import { done, hop, type Process } from '../tasks/tasks.ts';

export const PUBLIC_EVENT_LANE = 'public-events';
export const PUBLIC_EVENT_PROCESS = 'public-events';
/** A transaction writes so many deliveries. It locks no webhook. */
const BATCH = 500;

interface Progress {
  type: EventType;
  paid: boolean;
  /** The last webhook that has its delivery. */
  after: string;
}

/** @param eventId the event, and the subject of the task */
export const publicEventTask = (eventId: string, type: EventType): NewTask => ({
  lane: PUBLIC_EVENT_LANE,
  process: PUBLIC_EVENT_PROCESS,
  subject: eventId,
  accountId: OPERATOR_ACCOUNT,
  data: { type, paid: true, after: '' } satisfies Progress,
});

/** The commit of a batch also writes how far the task is, so no webhook gets an event twice. */
export const publicEventProcess = (db: Database, batch = BATCH): Process => ({
  lane: PUBLIC_EVENT_LANE,
  steps: {
    start: async ({ subject, data, createdAt }) => {
      const { type, paid, after } = data as unknown as Progress;
      const webhookIds = (await NEXT_LISTENERS.all(db, [type, after, paid, batch, createdAt, subject])).map(
        ({ id }) => id,
      );
      const last = webhookIds.at(-1);
      if (last === undefined) return paid ? hop('start', { data: { paid: false, after: '' } }) : done();
      return hop('start', {
        data: { after: last },
        commit: async (tx) => {
          await INSERT_DELIVERIES.all(tx, [subject, type, webhookIds]);
          tx.changedAll(deliveriesFor(webhookIds));
        },
      });
    },
  },
});
