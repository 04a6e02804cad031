/**
 * Idempotency keys, as their rows have them. An answer is sealed with AES-256-GCM under a key that is derived (HKDF,
 * RFC 5869) from the value of the idempotency key, of which only the SHA-256 is kept: who has the key can have the answer
 * again, with its secrets; who has the database cannot.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import { bytes, entity, key, nullable, timestamp } from './database/table.ts';
import type { Queryable } from './database/transaction.ts';
import { ApiError } from './errors.ts';
import { canonicalJson } from './json.ts';
import { digest, Vault } from './secrets.ts';

export const IdempotencyKey = entity(
  'idempotency_key',
  {
    /** Account, method and path; of a public request also an HMAC of its input. */
    scope: key(),
    /** SHA-256 of the key. */
    keyDigest: { ...bytes(), primary: true },
    /** HMAC of the input under the key. */
    inputMac: bytes(),
    /** Null only within the transaction that makes it. */
    sealedAnswer: nullable(bytes()),
    expiresAt: timestamp(),
  },
  [{ name: 'idempotency_key_expires', columns: ['expiresAt'] }],
);

const KEPT_HOURS = 24;

export interface KeyedRequest {
  /** Null if it came without a credential: then the key counts together with the input. */
  accountId: string | null;
  method: string;
  path: string;
  key: string;
  /** What was sent; the order of members does not count. */
  input: unknown;
}

/** The key is taken, by a request that is running or has just ended. */
export class KeyTaken extends Error {}

/** One request, as its row has it. */
export class KeptRequest {
  /** What requests with the same key share. */
  readonly name: string;
  readonly #scope: string;
  readonly #keyDigest: Buffer;
  readonly #inputMac: Buffer;
  readonly #vault: Vault;
  /** Names the advisory lock that its transaction holds. */
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

  /** The kept answer, if there is one. @throws KeyTaken, or ApiError idempotency_key_reused */
  async find(db: Queryable): Promise<string | undefined> {
    const [row] = await db.query<{ running: boolean; inputMac: Buffer | null; sealedAnswer: Buffer }>(
      `select not pg_try_advisory_xact_lock($3) as running, input_mac, sealed_answer
      from (select) as always
      left join idempotency_key on scope = $1 and key_digest = $2 and expires_at > now()`,
      [this.#scope, this.#keyDigest, this.#lock],
    );
    const { running, inputMac, sealedAnswer } = row!;
    if (!inputMac && running) throw new KeyTaken('The idempotency key is taken.');
    if (!inputMac) return undefined;
    if (!inputMac.equals(this.#inputMac)) throw new ApiError('idempotency_key_reused');
    return this.#vault.open(sealedAnswer, this.name);
  }

  /** Takes the key, without waiting: whoever waits does it without a connection. @throws KeyTaken */
  async claim(tx: Queryable): Promise<void> {
    const [claimed] = await tx.query(
      `insert into idempotency_key as kept (scope, key_digest, input_mac, expires_at)
      select $1, $2, $3, now() + make_interval(hours => ${KEPT_HOURS}) where pg_try_advisory_xact_lock($4)
      on conflict (scope, key_digest) do update
        set input_mac = excluded.input_mac, sealed_answer = null, expires_at = excluded.expires_at where kept.expires_at <= now()
      returning true`,
      [this.#scope, this.#keyDigest, this.#inputMac, this.#lock],
    );
    if (!claimed) throw new KeyTaken('The idempotency key is taken.');
  }

  async keep(tx: Queryable, answer: string): Promise<void> {
    await tx.query('update idempotency_key set sealed_answer = $3 where scope = $1 and key_digest = $2', [
      this.#scope,
      this.#keyDigest,
      this.#vault.seal(answer, this.name),
    ]);
  }

  async forget(tx: Queryable): Promise<void> {
    await tx.query('delete from idempotency_key where scope = $1 and key_digest = $2', [this.#scope, this.#keyDigest]);
  }
}
