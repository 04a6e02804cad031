/** Finds the accounts of customers for the operator. */
import { isIP } from 'node:net';
import type { Account } from '../../entities/accounts/account.ts';
import { FIND_ACCOUNTS, LATEST_ACCOUNTS } from '../../entities/accounts/find.ts';
import type { Context } from '../context.ts';
import { invalid } from '../errors.ts';

const FOUND_MAX = 50;

/**
 * Finds accounts by an id, an order number, an email, or the beginning or domain of one. A host name or address of a server
 * serves, too. So do a transaction, an address of a payment, and the beginning of an API key. Without a search, the newest
 * accounts come.
 * @param at the time at which the server had the address; null: now
 * @throws ApiError validation_failed for a time without an address
 */
export const findAccounts = async ({ db }: Context, search: string | null, at: Date | null): Promise<Account[]> => {
  const text = search?.trim() ?? '';
  // PostgreSQL knows no zones of addresses.
  const address = isIP(text) && !text.includes('%') ? text : null;
  if (at && !address) throw invalid('at', 'A time belongs to an address. Search for an address, or leave at out.');
  if (search === null) return LATEST_ACCOUNTS.all(db, [FOUND_MAX]);
  return FIND_ACCOUNTS.all(db, [text, address, FOUND_MAX, at]);
};
