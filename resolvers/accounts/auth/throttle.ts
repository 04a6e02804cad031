/**
 * The throttle of logins. An account and a network may each fail ten times in fifteen minutes. Then the service answers
 * 429 until it forgets the oldest failure. HMACs of names and networks identify the counts. A known pair of name and
 * network has counts of its own. So strangers in other networks cannot lock the owner out.
 *
 * Behind one address, such as that of an onion service, strangers share the owner's network. So a proof gives
 * a caller a count apart. A credential of the account with the scope full is a proof. For the second factor, the password and
 * a recovery code are, too. A right password alone must not pass a full count. A thief would learn from each pass that a guess
 * is right.
 *
 * All counts of a name together have a limit, too. So codes of six digits stay hard to guess by many counts. A thief or a
 * stranger may fill that limit from many networks. So each count keeps its first failures apart, within a second limit.
 */
import { createHmac } from 'node:crypto';
import { ApiError, type ErrorCode } from '../../../entities/errors.ts';
import { networkOf } from '../../../entities/networks.ts';
import type { HashedLoginAttempt, LoginAttempts } from './login-attempts.ts';

const FAILURES: ReadonlySet<ErrorCode> = new Set(['invalid_login', 'invalid_totp', 'wrong_password']);

/** All counts of a name together may have so many times the failures of one. A thief with one proof of each kind stays below. */
const COUNTS_MAX = 5;
/** The part of its failures that a count keeps when all counts together are full. As many again may use such parts. */
const KEPT_PART = 0.3;

const isFailure = (error: unknown): error is ApiError => error instanceof ApiError && FAILURES.has(error.code);
const isThrottled = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === 'login_throttled';

/** The name of a login, and the address of its caller. */
export interface LoginAttempt {
  name: string;
  address: string | null;
  /** The proof that the caller gave before. Each account has counts for each proof. */
  proof?: Proof | undefined;
}

/**
 * A login by its refresh family, an API key or token of a client, the password, or a recovery code. A thief of one login
 * cannot make another.
 * All keys and clients are one proof, because they make more of their kind.
 */
export type Proof = `login ${string}` | 'credential' | 'password' | 'recovery code';

export class LoginThrottle {
  readonly #failuresMax: number;
  readonly #attempts: LoginAttempts;
  readonly #key: Buffer;
  readonly #onRefused: (login: LoginAttempt, code: ErrorCode) => void;

  /**
   * @param key the key of the HMACs, which all processes share
   * @param onRefused hears of failed and of throttled logins
   */
  constructor(
    failuresMax: number,
    attempts: LoginAttempts,
    key: Buffer,
    onRefused: (login: LoginAttempt, code: ErrorCode) => void = () => {},
  ) {
    this.#onRefused = onRefused;
    this.#failuresMax = failuresMax;
    this.#attempts = attempts;
    this.#key = key;
  }

  /**
   * Does the work of a login, and counts wrong passwords and codes. The count is exact: only as many logins run at once
   * as may still fail, and the others wait.
   * @throws ApiError login_throttled, or the error of the work
   */
  async attempt<T>(login: LoginAttempt, work: () => Promise<T>): Promise<T> {
    let reached: 'own' | 'whole' | 'work' = 'own';
    const within = (kind: 'whole' | 'kept', failuresMax: number) =>
      this.#counted(this.#hashed(login), failuresMax, () => {
        reached = 'whole';
        return this.#counted(this.#allOf(kind, login), this.#failuresMax * COUNTS_MAX, () => {
          reached = 'work';
          return work();
        });
      });
    try {
      return await within('whole', this.#failuresMax).catch((full) => {
        if (reached !== 'whole' || !isThrottled(full)) throw full;
        return within('kept', Math.max(1, Math.floor(this.#failuresMax * KEPT_PART))).catch((error) => {
          throw reached === 'work' ? error : full;
        });
      });
    } catch (error) {
      if (isFailure(error) || isThrottled(error)) this.#onRefused(login, error.code);
      throw error;
    }
  }

  /**
   * Does the work of a caller who sends a secret that is too long to guess. It counts nothing, because strangers could fill a
   * count and so keep the owner out. The owner hears of failures.
   */
  async uncounted<T>(login: LoginAttempt, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isFailure(error)) this.#onRefused(login, error.code);
      throw error;
    }
  }

  /** One count of all attempts at the name. */
  #allOf(kind: 'whole' | 'kept', { name }: LoginAttempt): HashedLoginAttempt {
    const key = this.#hmac(`${kind} ${name}`);
    return { pair: key, paired: key, apart: [key] };
  }

  async #counted<T>(hashed: HashedLoginAttempt, max: number, work: () => Promise<T>): Promise<T> {
    const end = await this.#begin(hashed, max);
    let failed = false;
    try {
      return await work();
    } catch (error) {
      failed = isFailure(error);
      throw error;
    } finally {
      end(failed);
    }
  }

  /** Remembers that the name has logged in from the network of the address. Never rejects. */
  remember(login: LoginAttempt): Promise<void> {
    return this.#attempts.remember(this.#hashed(login).pair);
  }

  /** Waits until the login may be tried. @throws ApiError login_throttled */
  async #begin(hashed: HashedLoginAttempt, max: number): Promise<(failed: boolean) => void> {
    for (;;) {
      const beginning = await this.#attempts.begin(hashed, max);
      if ('end' in beginning) return beginning.end;
      if ('refusedMs' in beginning)
        throw new ApiError('login_throttled', undefined, {
          retryAfter: Math.max(1, Math.ceil(beginning.refusedMs / 1000)),
        });
      await beginning.wait;
    }
  }

  #hashed({ name, address, proof }: LoginAttempt): HashedLoginAttempt {
    const network = address && networkOf(address);
    const pair = this.#hmac(`pair ${name} ${network}`);
    if (proof)
      return { pair, paired: this.#hmac(`${proof} ${name} ${network}`), apart: [this.#hmac(`${proof} ${name}`)] };
    const apart = [this.#hmac(`name ${name}`), ...(network ? [this.#hmac(`network ${network}`)] : [])];
    return { pair, paired: pair, apart };
  }

  #hmac(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64');
  }
}
