/**
 * Idempotency keys and their kept answers, which are sealed for the value of the idempotency key. The table holds only the
 * SHA-256 of that value. So a caller with the key can read the answer again, secrets included, and a reader of the database
 * cannot.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import * as column from './database/column.ts';
import { sealedColumn } from './database/sealed.ts';
import { statement } from './database/statement.ts';
import { entity, nullable } from './database/table.ts';
import type { Queryable } from './database/transaction.ts';
import { ApiError } from './errors.ts';
import { canonicalJson } from './json.ts';
import { digest, type Vault } from './secrets.ts';

const IdempotencyKey = entity('idempotency_key', {
  /** Account, method and path; for a public request and one with a password also an HMAC of its input. */
  scope: column.key(),
  /** SHA-256 of the key. */
  keyDigest: { ...column.bytes(), primary: true },
  /** Sealed: the SHA-256 of the input, the owner, the SHA-256 of the code, and the answer. Null only within the transaction that inserts the row. */
  sealedAnswer: nullable(column.bytes()),
  expiresAt: column.timestamp(),
});
const SEALED_ANSWER = sealedColumn(IdempotencyKey, 'sealedAnswer', `scope || ' ' || encode(key_digest, 'hex')`);

const KEPT_HOURS = 24;

/** Whether this transaction now has the advisory locks $3. */
const LOCKED_SQL = '(select bool_and(pg_try_advisory_xact_lock(one)) from unnest($3::bigint[]) as one)';
/** Whether a request with the key is running, and whether an answer is kept. $1 scopes, $2 digest of the key, $3 advisory locks. */
const FIND_ANSWER = statement({ running: column.boolean(), kept: column.boolean() })`
  select not ${LOCKED_SQL} as running, exists (
    select from idempotency_key where scope = any($1::text[]) and key_digest = $2 and expires_at > now() and sealed_answer is not null
  ) as kept`;
/** Takes a key that is free or expired. $1 scope, $2 digest of the key, $3 advisory locks. */
const CLAIM_KEY = statement({ claimed: column.boolean() })`
  insert into idempotency_key as kept (scope, key_digest, expires_at)
    select $1, $2, now() + make_interval(hours => ${KEPT_HOURS}) where ${LOCKED_SQL}
    on conflict (scope, key_digest) do update
      set sealed_answer = null, expires_at = excluded.expires_at where kept.expires_at <= now()
    returning true as claimed`;
/** Whether an answer is kept under one of the scopes $1. $2 digest of the key. */
const FIND_OTHER = statement({ found: column.boolean() })`
  select true as found from idempotency_key where scope = any($1::text[]) and key_digest = $2 and expires_at > now()`;
const KEEP_ANSWER = statement({})`update idempotency_key set sealed_answer = $3 where scope = $1 and key_digest = $2`;
/** Returns the kept answer. It changes nothing, but its commit waits until the synchronous standbys of PostgreSQL have every earlier commit. */
const CONFIRMED_ANSWER = statement({ scope: column.text(), sealedAnswer: column.bytes() })`
  update idempotency_key set expires_at = expires_at
    where scope = any($1::text[]) and key_digest = $2 and expires_at > now() and sealed_answer is not null
    returning scope, sealed_answer`;
const FORGET_KEY = statement({})`delete from idempotency_key where scope = $1 and key_digest = $2`;
const DELETE_EXPIRED_KEYS = statement({})`delete from idempotency_key where expires_at < now()`;

export interface KeyedRequest {
  /** Null for a request without a credential: then the input belongs to the scope of the key. */
  accountId: string | null;
  /** The login, API key or OAuth client that asks. No other credential gets the kept answer. Absent without a credential. */
  owner?: string | null;
  method: string;
  path: string;
  key: string;
  /** The input of the request; the order of its members does not matter. */
  input: unknown;
  /** Whether the input has the password of the account. It then belongs to the scope, so that a refused key tells nothing of it. */
  hasPassword?: boolean;
  /** The code of the second factor, which a repeated request may replace. */
  code?: string | undefined;
}

/** A kept answer, and whether its request had the same code of the second factor. */
export interface Kept {
  answer: string;
  sameCode: boolean;
}

/** Another request holds the key: it is running, or has just ended. */
export class KeyTaken extends Error {}

const ofOther = () =>
  new ApiError(
    'idempotency_key_reused',
    'Another credential of the account used this idempotency key, and its answer may have secrets. Use a new key.',
  );

/** One request with an idempotency key, and its row. */
export class KeptRequest {
  /** Requests with the same key have the same name. */
  readonly name: string;
  /** The scope under the current key of the service, then those under previous ones. A scope without the input has one. */
  readonly #scopes: [string, ...string[]];
  readonly #value: string;
  readonly #keyDigest: Buffer;
  readonly #inputDigest: string;
  readonly #owner: string;
  readonly #code: string;
  readonly #vault: Vault;

  constructor({ accountId, owner, method, path, key: value, input, hasPassword, code }: KeyedRequest, vault: Vault) {
    const text = canonicalJson(input);
    const scopeOf = (salt: Buffer) => {
      const mac = createHmac('sha256', Buffer.from(hkdfSync('sha256', value, salt, 'input', 32))).update(text);
      return `${accountId ?? 'public'} ${mac.digest('base64url')} ${method} ${path}`;
    };
    this.#scopes =
      accountId === null || hasPassword
        ? (vault.deriveAll('idempotency').map(scopeOf) as [string, ...string[]])
        : [`${accountId} ${method} ${path}`];
    this.#value = value;
    this.#keyDigest = digest(value);
    this.#inputDigest = digest(text).toString('base64url');
    this.#owner = owner ?? '';
    this.#code = code ? digest(code).toString('base64url') : '';
    this.#vault = vault;
    this.name = this.#nameOf(this.#scopes[0]);
  }

  /**
   * Returns the kept answer when it survives the end of the primary, or undefined. PostgreSQL may show rows that no standby has,
   * because the connection of their commit ended during its wait. A failover would lose them.
   * @throws KeyTaken, also if a failover loses the answer meanwhile, or ApiError idempotency_key_reused
   */
  async find(db: Queryable): Promise<Kept | undefined> {
    const parameters = [this.#scopes, this.#keyDigest];
    const found = (await FIND_ANSWER.first(db, [...parameters, this.#locks]))!;
    if (!found.kept && !found.running) return undefined;
    const confirmed = found.kept ? await CONFIRMED_ANSWER.first(db, parameters) : undefined;
    if (!confirmed) throw new KeyTaken('The idempotency key is taken.');
    return this.#open(confirmed.scope, confirmed.sealedAnswer);
  }

  /** @throws ApiError idempotency_key_reused */
  #open(scope: string, sealedAnswer: Buffer): Kept {
    const kept = SEALED_ANSWER.open(this.#vault, sealedAnswer, this.#nameOf(scope), this.#value);
    const [about] = kept.split(' ', 1);
    const [inputDigest, owner, code] = about!.split('.');
    if (owner !== this.#owner) throw ofOther();
    if (inputDigest !== this.#inputDigest) throw new ApiError('idempotency_key_reused');
    return { answer: kept.slice(about!.length + 1), sameCode: code === this.#code };
  }

  /** Takes the key without waiting: a caller waits without a connection. @throws KeyTaken */
  async claim(tx: Queryable): Promise<void> {
    const claimed = await CLAIM_KEY.first(tx, [...this.#key, this.#locks]);
    if (!claimed || (await this.#isElsewhere(tx))) throw new KeyTaken('The idempotency key is taken.');
  }

  /**
   * Whether a process with another current key has kept an answer. A statement sees only rows from before its start. So
   * this one follows the statement that took the locks.
   */
  async #isElsewhere(tx: Queryable): Promise<boolean> {
    const others = this.#scopes.slice(1);
    return others.length > 0 && (await FIND_OTHER.first(tx, [others, this.#keyDigest])) !== undefined;
  }

  async keep(tx: Queryable, answer: string): Promise<void> {
    const about = [this.#inputDigest, this.#owner, this.#code].join('.');
    const kept = SEALED_ANSWER.seal(this.#vault, `${about} ${answer}`, this.name, this.#value);
    await KEEP_ANSWER.all(tx, [...this.#key, kept]);
  }

  async forget(tx: Queryable): Promise<void> {
    await FORGET_KEY.all(tx, this.#key);
  }

  /** SHA-256 of the account, the operation and the key, for work that outlives a failed request. */
  get digest(): Buffer {
    return digest(this.name);
  }

  /** The primary key of the row. */
  get #key(): [scope: string, keyDigest: Buffer] {
    return [this.#scopes[0], this.#keyDigest];
  }

  /** Name the advisory locks of the transaction. */
  get #locks(): bigint[] {
    return this.#scopes.map((scope) => digest(this.#nameOf(scope)).readBigInt64BE());
  }

  #nameOf(scope: string): string {
    return `${scope} ${this.#keyDigest.toString('hex')}`;
  }
}

/** Deletes the keys that have expired. */
export const sweepIdempotencyKeys = (db: Queryable): Promise<unknown> => DELETE_EXPIRED_KEYS.all(db);
