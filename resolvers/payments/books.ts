/** What only the operator asks. */
import { type Proof, proveBooks } from '../../entities/payments/books.ts';
import type { Context } from '../context.ts';

export type { Proof };
export const findBooks = ({ db }: Context): Promise<Proof> => proveBooks(db);
