/** An account with all that belongs to it, for the operator, and the notes of operators about it. */
import type { EntitySchema } from 'typeorm';
import { Account, type BalanceView, FIND_BALANCE } from '../../entities/accounts/account.ts';
import { AccountNote, ADD_NOTE } from '../../entities/accounts/account-note.ts';
import { Message } from '../../entities/accounts/message.ts';
import { exists, find } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { Event } from '../../entities/history/event.ts';
import { isId, newId } from '../../entities/ids.ts';
import { Payment } from '../../entities/payments/payment.ts';
import { LIST_SERVERS } from '../../entities/servers/find.ts';
import type { ShownServer } from '../../entities/servers/server.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';
import { recordByOperator } from '../record.ts';
import { listCases } from './cases.ts';

/** The most rows of a kind. Other lists of the operator have all of them. */
const RECENT_MAX = 50;

/** @throws ApiError not_found */
export const findCustomer = async ({ db }: Context, id: string): Promise<Account> =>
  found(isId('acct', id) && (await find(db, Account, { id })));

export const balanceOf = async ({ db }: Context, { id }: Account): Promise<BalanceView> =>
  found(await FIND_BALANCE.first(db, [id]));

/** The servers of an account, newest first, without deleted ones. */
export const serversOf = ({ db }: Context, { id }: Account): Promise<ShownServer[]> =>
  LIST_SERVERS.all(db, [RECENT_MAX, id, null, null, null, null, [], [], null, null]);

export const casesOf = (context: Context, { id }: Account) => listCases(context, { accountId: id }, RECENT_MAX);

/** The newest rows of an account. */
const recent =
  <Row extends { id: string; accountId: string }>(table: EntitySchema<Row>) =>
  ({ db }: Context, { id }: Account): Promise<Row[]> =>
    db.manager.find(table, { where: { accountId: id }, order: { id: 'DESC' }, take: RECENT_MAX } as object);

export const paymentsOf = recent(Payment);
export const messagesOf = recent(Message);
export const eventsOf = recent(Event);
export const notesOf = recent(AccountNote);

/** Adds a note of the operator to an account. @throws ApiError not_found */
export async function addNote(context: Context, accountId: string, text: string): Promise<AccountNote> {
  return context.db.transaction(async (tx) => {
    found(isId('acct', accountId) && (await exists(tx, Account, { id: accountId })));
    return writeNote(tx, context, accountId, text);
  });
}

/** Adds a note to an account that exists, within a transaction. */
export async function writeNote(
  tx: Transaction,
  context: Context,
  accountId: string,
  text: string,
): Promise<AccountNote> {
  const { name, credentialId } = context.viewer!;
  const note = (await ADD_NOTE.first(tx, [newId('note'), accountId, name ?? credentialId, text]))!;
  await recordByOperator(tx, context, note.id, { type: 'note.added', data: { accountId } });
  return note;
}
