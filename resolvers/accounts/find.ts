/** Finds the accounts of customers for the operator. */
import { isIP } from 'node:net';
import type { Account } from '../../entities/accounts/account.ts';
import { FIND_ACCOUNTS } from '../../entities/accounts/find.ts';
import type { Context } from '../context.ts';

const FOUND_MAX = 50;

/**
 * Finds accounts by an id, an email, an order number or the address of a server. The id of a transaction, an address of a
 * payment, and the beginning of an API key serve, too.
 */
export const findAccounts = ({ db }: Context, search: string): Promise<Account[]> => {
  const text = search.trim();
  // PostgreSQL knows no zones of addresses.
  return FIND_ACCOUNTS.all(db, [text, isIP(text) && !text.includes('%') ? text : null, FOUND_MAX]);
};
