/**
 * Idempotency keys and their kept answers, which are sealed with AES-256-GCM. HKDF (RFC 5869) derives the sealing key from
 * the value of the idempotency key. The table holds only the SHA-256 of that value. So a caller with the key can read the
 * answer again, secrets included, and a reader of the database cannot.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { entity, nullable } from './database/table.ts';
import type { Queryable } from './database/transaction.ts';
import { ApiError } from './errors.ts';
import { canonicalJson } from './json.ts';
import { digest, Vault } from './secrets.ts';

entity('idempotency_key', {
  /** Account, method and path; for a public request also an HMAC of its input. */
  scope: column.key(),
  /** SHA-256 of the key. */
  keyDigest: { ...column.bytes(), primary: true },
  /** HMAC of the input under the key. */
  inputMac: column.bytes(),
  /** Null only within the transaction that inserts the row. */
  sealedAnswer: nullable(column.bytes()),
  expiresAt: column.timestamp(),
});

const KEPT_HOURS = 24;

/** The kept answer, and whether a request with the key is running. $1 scope, $2 digest of the key, $3 advisory lock. */
const FIND_ANSWER = statement({
  running: column.boolean(),
  inputMac: nullable(column.bytes()),
  sealedAnswer: nullable(column.bytes()),
})`
  select not pg_try_advisory_xact_lock($3) as running, input_mac, sealed_answer
    from (select) as always
    left join idempotency_key on scope = $1 and key_digest = $2 and expires_at > now()`;
/** Takes a key that is free or expired. $1 scope, $2 digest of the key, $3 HMAC of the input, $4 advisory lock. */
const CLAIM_KEY = statement({ claimed: column.boolean() })`
  insert into idempotency_key as kept (scope, key_digest, input_mac, expires_at)
    select $1, $2, $3, now() + make_interval(hours => ${KEPT_HOURS}) where pg_try_advisory_xact_lock($4)
    on conflict (scope, key_digest) do update
      set input_mac = excluded.input_mac, sealed_answer = null, expires_at = excluded.expires_at where kept.expires_at <= now()
    returning true as claimed`;
const KEEP_ANSWER = statement({})`update idempotency_key set sealed_answer = $3 where scope = $1 and key_digest = $2`;
const FORGET_KEY = statement({})`delete from idempotency_key where scope = $1 and key_digest = $2`;
const DELETE_EXPIRED_KEYS = statement({})`delete from idempotency_key where expires_at < now()`;

export interface KeyedRequest {
  /** Null for a request without a credential: then the input belongs to the scope of the key. */
  accountId: string | null;
  method: string;
  path: string;
  key: string;
  /** The input of the request; the order of its members does not matter. */
  input: unknown;
}

/** Another request holds the key: it is running, or has just ended. */
export class KeyTaken extends Error {}

/** One request with an idempotency key, and its row. */
export class KeptRequest {
  /** Requests with the same key have the same name. */
  readonly name: string;
  readonly #scope: string;
  readonly #keyDigest: Buffer;
  readonly #inputMac: Buffer;
  readonly #vault: Vault;
  /** Names the advisory lock of the transaction. */
  readonly #lock: bigint;

  constructor({ accountId, method, path, key: value, input }: KeyedRequest, salt: Buffer) {
    const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', value, salt, purpose, 32));
    this.#inputMac = createHmac('sha256', derive('input')).update(canonicalJson(input)).digest();
    this.#scope = `${accountId ?? `public ${this.#inputMac.toString('base64url')}`} ${method} ${path}`;
    this.#keyDigest = digest(value);
    this.#vault = new Vault(derive('answer'));
    this.name = `${this.#scope} ${this.#keyDigest.toString('base64url')}`;
    this.#lock = digest(this.name).readBigInt64BE();
  }

  /** Returns the kept answer, or undefined. @throws KeyTaken, or ApiError idempotency_key_reused */
  async find(db: Queryable): Promise<string | undefined> {
    const { running, inputMac, sealedAnswer } = (await FIND_ANSWER.first(db, [...this.#key, this.#lock]))!;
    if (!inputMac && running) throw new KeyTaken('The idempotency key is taken.');
    if (!inputMac) return undefined;
    if (!inputMac.equals(this.#inputMac)) throw new ApiError('idempotency_key_reused');
    return this.#vault.open(sealedAnswer!, this.name);
  }

  /** Takes the key without waiting: a caller waits without a connection. @throws KeyTaken */
  async claim(tx: Queryable): Promise<void> {
    const claimed = await CLAIM_KEY.first(tx, [...this.#key, this.#inputMac, this.#lock]);
    if (!claimed) throw new KeyTaken('The idempotency key is taken.');
  }

  async keep(tx: Queryable, answer: string): Promise<void> {
    await KEEP_ANSWER.all(tx, [...this.#key, this.#vault.seal(answer, this.name)]);
  }

  async forget(tx: Queryable): Promise<void> {
    await FORGET_KEY.all(tx, this.#key);
  }

  /** The primary key of the row. */
  get #key(): [scope: string, keyDigest: Buffer] {
    return [this.#scope, this.#keyDigest];
  }
}

/** Deletes the keys that have expired. */
export const sweepIdempotencyKeys = (db: Queryable): Promise<unknown> => DELETE_EXPIRED_KEYS.all(db);
