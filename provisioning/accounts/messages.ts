/** Writes messages with their events: one at once, or one to each of many accounts, in batches. */
import { INSERT_MESSAGES, type Message, type MessageSender, NEXT_RECIPIENTS } from '../../entities/accounts/message.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { type Actor, OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record, recordAll } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import type { NewTask } from '../../entities/tasks/start.ts';
import { done, hop, type Process } from '../tasks/tasks.ts';

/** A message without its sender and its recipient. */
export type Letter = Pick<Message, 'title' | 'body' | 'relatedType' | 'relatedId'>;

/** Writes the same message to each of the accounts, or from it, and records `message.created` on each. */
export async function writeMessages(
  tx: Transaction,
  sender: MessageSender,
  accountIds: readonly string[],
  { title, body, relatedType, relatedId }: Letter,
  actor: Actor,
): Promise<Message[]> {
  const ids = accountIds.map(() => newId('msg'));
  const credential = sender === 'CUSTOMER' ? actor.id : null;
  const letter = [title, body, relatedType, relatedId, credential];
  const written = await INSERT_MESSAGES.all(tx, [ids, accountIds, sender, ...letter]);
  await recordAll(
    tx,
    written.map(({ id, accountId }) => ({ accountId, subject: id, type: 'message.created', actor })),
  );
  return written;
}

export const MESSAGE_LANE = 'messages';
export const MESSAGE_PROCESS = 'messages';
/** A transaction writes so many messages. It locks no account. */
const BATCH = 500;

/** A message to all accounts, or to those with a server in a region. */
export interface Circular extends Letter {
  /** Null: all accounts. */
  region: string | null;
  actor: Actor;
}
interface Progress extends Circular {
  /** The last account that has its message, and how many have theirs. */
  after: string;
  sent: number;
}

/** @param id the subject of the task, and of the event `message.sent` at its end */
export const circularTask = (id: string, circular: Circular): NewTask => ({
  lane: MESSAGE_LANE,
  process: MESSAGE_PROCESS,
  subject: id,
  accountId: OPERATOR_ACCOUNT,
  data: { ...circular, after: '', sent: 0 } satisfies Progress,
});

/** The commit of a batch also writes how far the task is, so no account gets a message twice. */
export const messageProcess = (db: Database, batch = BATCH): Process => ({
  lane: MESSAGE_LANE,
  steps: {
    start: async ({ subject, data, createdAt }) => {
      const { region, after, sent, actor, ...letter } = data as unknown as Progress;
      const accounts = (await NEXT_RECIPIENTS.all(db, [after, createdAt, region, batch])).map(({ id }) => id);
      const last = accounts.at(-1);
      if (last === undefined)
        return done({
          commit: (tx) =>
            record(tx, OPERATOR_ACCOUNT, subject, { type: 'message.sent', actor, data: { accounts: sent, region } }),
        });
      return hop('start', {
        data: { after: last, sent: sent + accounts.length },
        commit: (tx) => writeMessages(tx, 'OPERATOR', accounts, letter, actor),
      });
    },
  },
});
