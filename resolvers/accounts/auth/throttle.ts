/**
 * The throttle of logins. An account and a network may each fail ten times in fifteen minutes. Then the service answers
 * 429 until it forgets the oldest failure. HMACs of names and networks identify the counts. A known pair of name and
 * network has a count of its own. So strangers in other networks cannot lock the owner out.
 *
 * Behind one address, such as that of an onion service, strangers share the owner's network. So a proof gives
 * a caller a count apart. The proof is a credential of the account with the scope full or, for the second factor, its password. A right
 * password alone must not pass a full count. A thief would learn from each pass that a guess is right.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { ApiError, type ErrorCode } from '../../../entities/errors.ts';
import { networkOf } from '../../../entities/networks.ts';
import { type HashedLoginAttempt, type LoginAttempts, MemoryLoginAttempts } from './login-attempts.ts';

const FAILURES: ReadonlySet<ErrorCode> = new Set(['invalid_login', 'invalid_totp', 'wrong_password']);

/** The name of a login, and the address of its caller. */
export interface LoginAttempt {
  name: string;
  address: string | null;
  /** The proof that the caller gave before. Each account has one count for each proof, so more keys allow no more guesses. */
  proof?: Proof | undefined;
}

/** A session of a login, an API key or token of a client, or the password. */
export type Proof = 'login' | 'credential' | 'password';

export class LoginThrottle {
  readonly #failuresMax: number;
  readonly #attempts: LoginAttempts;
  readonly #key: Buffer;
  readonly #onRefused: (name: string, code: ErrorCode) => void;

  /**
   * @param attempts the counts; by default the counts of this process
   * @param key the key of the HMACs. Processes that share counts share it; by default the process makes one
   * @param onRefused hears of failed and of throttled logins
   */
  constructor(
    failuresMax: number,
    attempts: LoginAttempts = new MemoryLoginAttempts(),
    key: Buffer = randomBytes(32),
    onRefused: (name: string, code: ErrorCode) => void = () => {},
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
    const end = await this.#begin(login);
    let failed = false;
    try {
      return await work();
    } catch (error) {
      failed = error instanceof ApiError && FAILURES.has(error.code);
      if (failed) this.#onRefused(login.name, (error as ApiError).code);
      throw error;
    } finally {
      end(failed);
    }
  }

  /** Remembers that the name has logged in from the network of the address. */
  remember(login: LoginAttempt): void {
    this.#attempts.remember(this.#hashed({ ...login, proof: undefined }).pair);
  }

  /** Waits until the login may be tried. @throws ApiError login_throttled */
  async #begin(login: LoginAttempt): Promise<(failed: boolean) => void> {
    const hashed = this.#hashed(login);
    for (;;) {
      const beginning = await this.#attempts.begin(hashed, this.#failuresMax);
      if ('end' in beginning) return beginning.end;
      if ('refusedMs' in beginning) {
        this.#onRefused(login.name, 'login_throttled');
        throw new ApiError('login_throttled', undefined, {
          retryAfter: Math.max(1, Math.ceil(beginning.refusedMs / 1000)),
        });
      }
      await beginning.wait;
    }
  }

  #hashed({ name, address, proof }: LoginAttempt): HashedLoginAttempt {
    const proven = proof && this.#hmac(`${proof} ${name}`);
    if (proven) return { pair: proven, apart: [proven] };
    const network = address && networkOf(address);
    const apart = [this.#hmac(`name ${name}`), ...(network ? [this.#hmac(`network ${network}`)] : [])];
    return { pair: this.#hmac(`pair ${name} ${network}`), apart };
  }

  #hmac(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64');
  }
}
