/** Notes of operators about an account. Its customer does not see them, and nothing changes them. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, entity, type RowOf } from '../database/table.ts';

export const AccountNote = entity('account_note', {
  id: column.key(),
  accountId: column.text(),
  /** The name of the operator. */
  author: column.text(),
  body: column.text(),
  createdAt: column.now(),
});
export type AccountNote = RowOf<typeof AccountNote>;

/** Adds a note. $1 id, $2 account, $3 author, $4 text. */
export const ADD_NOTE = statement(AccountNote.columns)`
  insert into account_note (id, account_id, author, body) values ($1, $2, $3, $4) returning ${columnsOf(AccountNote)}`;
