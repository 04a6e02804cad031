/** Ways back into an account without its password: recovery codes, and challenges that its PGP key reads. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, nullable } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

/** An unused code. A code has 125 random bits, so a plain digest hides it. */
entity('recovery_code', {
  digest: { ...column.bytes(), primary: true },
  accountId: column.text(),
  createdAt: column.now(),
});

entity('recovery_challenge', {
  id: column.key(),
  /** Null: no account with a PGP key has the email, so every answer is wrong. */
  accountId: nullable(column.text()),
  /** The email, by which the throttle counts. */
  name: column.text(),
  /** The digest of the key and the answer. */
  digest: column.bytes(),
  tries: defaulting(column.int(), 0),
  expiresAt: column.timestamp(),
});

/** Keeps the digests $2 of new codes of the account $1. */
export const ADD_RECOVERY_CODES = statement({})`
  insert into recovery_code (account_id, digest) select $1, unnest($2::bytea[])`;
/** The account with the email $1 and the code with the digest $2. One statement, so its time tells no stranger of the email. */
export const FIND_RECOVERY_CODE = statement({ accountId: column.text() })`
  select account_id from recovery_code join account on account.id = account_id where digest = $2 and email = $1`;
/** Uses the code with the digest $2 of the account $1 up. Nothing: it was used before. */
export const USE_RECOVERY_CODE = statement({ accountId: column.text() })`
  delete from recovery_code where digest = $2 and account_id = $1 returning account_id`;
/** Deletes the codes of the account $1. */
export const DELETE_RECOVERY_CODES = statement({})`delete from recovery_code where account_id = $1`;

/** Keeps the challenge $1 of the account $2 (null: of none) for $5 seconds. $3 its email, $4 the digest of its key and answer. */
export const ADD_CHALLENGE = statement({})`
  insert into recovery_challenge (id, account_id, name, digest, expires_at)
  values ($1, $2, $3, $4, now() + make_interval(secs => $5))`;
/** The challenge $1, until it ends. */
export const FIND_CHALLENGE = statement({
  accountId: nullable(column.text()),
  name: column.text(),
  digest: column.bytes(),
})`
  select account_id, name, digest from recovery_challenge where id = $1 and expires_at > now()`;
/** Counts a try of the challenge $1, $2 at most. Nothing: it has ended. */
export const COUNT_TRY = statement({ tries: column.int() })`
  update recovery_challenge set tries = tries + 1 where id = $1 and expires_at > now() and tries < $2 returning tries`;
/** Ends the challenge $1. Nothing: it was answered before. */
export const END_CHALLENGE = statement({ id: column.key() })`delete from recovery_challenge where id = $1 returning id`;

const DELETE_ENDED = statement({})`delete from recovery_challenge where expires_at < now()`;
/** Deletes the challenges that have ended. */
export const sweepRecoveryChallenges = (db: Queryable): Promise<unknown> => DELETE_ENDED.all(db);
