/**
 * Guessing is slow: ten failed logins in fifteen minutes per account and per network, then 429 until the oldest is
 * forgotten. Names and addresses are counted as HMACs, never as they are. Whoever has logged in from a network before is
 * counted apart from strangers there and elsewhere, so that strangers cannot lock an owner out.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { ApiError, type ErrorCode } from '../../../entities/errors.ts';
import { type HashedLoginAttempt, type LoginAttempts, MemoryLoginAttempts } from './login-attempts.ts';
import { networkOf } from './networks.ts';

const FAILURES: ReadonlySet<ErrorCode> = new Set(['invalid_login', 'invalid_totp', 'wrong_password']);

/** The name that a login gives, and the address that it comes from. */
export interface LoginAttempt {
  name: string;
  address: string | null;
}

export class LoginThrottle {
  readonly #failuresMax: number;
  readonly #attempts: LoginAttempts;
  readonly #key: Buffer;

  /**
   * @param attempts by default those of this process
   * @param key of the HMACs, the same for all who count together; by default one that ends with this process
   */
  constructor(failuresMax: number, attempts: LoginAttempts = new MemoryLoginAttempts(), key: Buffer = randomBytes(32)) {
    this.#failuresMax = failuresMax;
    this.#attempts = attempts;
    this.#key = key;
  }

  /**
   * Tries. Exact under concurrency: as many are under way as could still fail, and the others wait for them.
   * @throws ApiError login_throttled, or what the work throws; wrong passwords and codes are counted
   */
  async attempt<T>(login: LoginAttempt, work: () => Promise<T>): Promise<T> {
    const end = await this.#begin(this.#hashed(login));
    let failed = false;
    try {
      return await work();
    } catch (error) {
      failed = error instanceof ApiError && FAILURES.has(error.code);
      throw error;
    } finally {
      end(failed);
    }
  }

  /** Remembers that they have logged in from there. */
  remember(login: LoginAttempt): void {
    this.#attempts.remember(this.#hashed(login).pair);
  }

  /** Waits until the login may be tried. @throws ApiError login_throttled */
  async #begin(login: HashedLoginAttempt): Promise<(failed: boolean) => void> {
    for (;;) {
      const beginning = await this.#attempts.begin(login, this.#failuresMax);
      if ('end' in beginning) return beginning.end;
      if ('refusedMs' in beginning)
        throw new ApiError('login_throttled', undefined, {
          retryAfter: Math.max(1, Math.ceil(beginning.refusedMs / 1000)),
        });
      await beginning.wait;
    }
  }

  #hashed({ name, address }: LoginAttempt): HashedLoginAttempt {
    const network = address && networkOf(address);
    const apart = [this.#hmac(`name ${name}`), ...(network ? [this.#hmac(`network ${network}`)] : [])];
    return { pair: this.#hmac(`pair ${name} ${network}`), apart };
  }

  #hmac(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64');
  }
}
