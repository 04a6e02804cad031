/** What only the operator asks. */
import { type Books, verifyBooks } from '../entities/ledger.ts';
import { Task } from '../entities/task.ts';
import type { Context } from './context.ts';

export type { Books };
export const findBooks = ({ db }: Context): Promise<Books> => verifyBooks(db);

/** Work that is due, sleeping or dead; the dead first. */
export const listTasks = ({ db }: Context, limit: number): Promise<Task[]> =>
  db.source.manager.find(Task, { order: { state: 'ASC', runAt: 'ASC' }, take: limit });
