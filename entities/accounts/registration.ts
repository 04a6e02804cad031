/** The accounts of the last minute, and the challenges that were solved for registrations. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

entity('solved_challenge', {
  /** The random part of the challenge. */
  nonce: column.key(),
  expiresAt: column.timestamp(),
});

/**
 * Returns the accounts of the last minute, up to $1. It also returns the end of a challenge of $2 seconds, in seconds
 * since the epoch.
 */
export const REGISTRATIONS = statement({ accounts: column.int(), ends: column.real() })`
  select count(*)::int as accounts, floor(extract(epoch from now()) + $2::int)::float8 as ends
  from (select from account where created_at > now() - interval '1 minute' limit $1) as recent`;

/** Notes the solved challenge $1, which ends at $2. Returns nothing if it has ended, or was solved before. */
export const NOTE_SOLVED = statement({ nonce: column.key() })`
  insert into solved_challenge (nonce, expires_at) select $1, to_timestamp($2) where to_timestamp($2) > now()
  on conflict (nonce) do nothing returning nonce`;

const DELETE_ENDED = statement({})`delete from solved_challenge where expires_at < now()`;

/** Deletes the challenges that have ended. */
export const sweepChallenges = (db: Queryable): Promise<unknown> => DELETE_ENDED.all(db);
