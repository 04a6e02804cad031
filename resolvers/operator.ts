/** What only the operator asks. */
import { type Books, verifyBooks } from '../entities/ledger.ts';
import type { Context } from './context.ts';

export type { Books };
export const findBooks = ({ db }: Context): Promise<Books> => verifyBooks(db);
