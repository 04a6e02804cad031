/**
 * Guessing is slow: ten failed logins in fifteen minutes per account and per network, then 429 until the oldest is
 * forgotten. Names and addresses are kept as HMACs under a key that this process forgets when it ends, and only in
 * memory. Whoever has logged in from a network before is counted apart from strangers there and elsewhere, so that
 * strangers cannot lock an owner out.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { ApiError, type ErrorCode } from '../../entities/errors.ts';

const WINDOW_MS = 15 * 60_000;
/** More than can fail within a window: each failure costs a password hash. */
const KEPT_MAX = 100_000;
const FAILURES: ReadonlySet<ErrorCode> = new Set(['invalid_login', 'invalid_totp', 'wrong_password']);

/** Who tries: the email or id of an account, and where from. */
export interface Trier {
  name: string;
  address: string | null;
}

class Tally {
  /** Milliseconds since the epoch, oldest first. */
  failures: number[] = [];
  /** Attempts of which it is not known yet how they end. */
  underWay = 0;
  readonly #waiting: (() => void)[] = [];
  forget(now: number): void {
    while (this.failures.length && this.failures[0]! <= now - WINDOW_MS) this.failures.shift();
  }
  /** Until an attempt ends. */
  wait(): Promise<void> {
    return new Promise((resume) => this.#waiting.push(resume));
  }
  wake(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

export class LoginThrottle {
  readonly #failuresMax: number;
  readonly #key = randomBytes(32);
  readonly #tallies = new Map<string, Tally>();
  /** Pairs of name and network that have logged in. */
  readonly #known = new Set<string>();

  constructor(failuresMax: number) {
    this.#failuresMax = failuresMax;
  }

  /**
   * Tries. Exact under concurrency: as many are under way as could still fail, and the others wait for them.
   * @throws ApiError login_throttled, or what the work throws; wrong passwords and codes are counted
   */
  async attempt<T>(trier: Trier, work: () => Promise<T>): Promise<T> {
    const tallies = this.#talliesOf(trier);
    for (let busy = this.#busy(tallies); busy; busy = this.#busy(tallies)) await busy.wait();
    for (const tally of tallies) tally.underWay++;
    try {
      return await work();
    } catch (error) {
      if (error instanceof ApiError && FAILURES.has(error.code))
        for (const tally of tallies) tally.failures.push(Date.now());
      throw error;
    } finally {
      for (const tally of tallies) {
        tally.underWay--;
        tally.wake();
      }
    }
  }

  /** Remembers that they have logged in from there. */
  welcome(trier: Trier): void {
    if (this.#known.size >= KEPT_MAX) this.#known.delete(this.#known.values().next().value!);
    this.#known.add(this.#pair(trier));
  }

  /** One that has to be waited for, if any. @throws ApiError login_throttled */
  #busy(tallies: Tally[]): Tally | undefined {
    const now = Date.now();
    for (const tally of tallies) tally.forget(now);
    const full = tallies.filter(({ failures }) => failures.length >= this.#failuresMax);
    if (full.length) {
      const frees = Math.max(...full.map(({ failures }) => failures.at(-this.#failuresMax)! + WINDOW_MS));
      const retryAfter = Math.max(1, Math.ceil((frees - now) / 1000));
      throw new ApiError('login_throttled', undefined, { retryAfter });
    }
    return tallies.find(({ failures, underWay }) => failures.length + underWay >= this.#failuresMax);
  }

  #talliesOf(trier: Trier): Tally[] {
    const pair = this.#pair(trier);
    if (this.#known.has(pair)) return [this.#tally(pair)];
    const network = trier.address && this.#hmac(`network ${networkOf(trier.address)}`);
    return [this.#hmac(`name ${trier.name}`), ...(network ? [network] : [])].map((key) => this.#tally(key));
  }

  #tally(key: string): Tally {
    const kept = this.#tallies.get(key);
    if (kept) return kept;
    const oldest = this.#tallies.size >= KEPT_MAX && this.#tallies.entries().next().value;
    if (oldest && oldest[1].underWay === 0) this.#tallies.delete(oldest[0]);
    const tally = new Tally();
    this.#tallies.set(key, tally);
    return tally;
  }

  #pair({ name, address }: Trier): string {
    return this.#hmac(`pair ${name} ${address && networkOf(address)}`);
  }

  #hmac(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64');
  }
}

/** An IPv4 address, or the /64 of an IPv6 one: as much as one household has. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('%')[0]!.split('::');
  const groups = head ? head.split(':') : [];
  const rest = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length;
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...rest];
  return all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
