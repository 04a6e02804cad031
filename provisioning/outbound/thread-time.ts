/**
 * The accounts share the time of the thread. Receivers choose their certificates, and OpenSSL checks some of them for 50 ms. A
 * round of the event loop reads for one account: the one whose costly reads have used the least time. Equal accounts take
 * turns. So an account with costly receivers delays another by one of its reads.
 */

/** A usual read takes less, and counts nothing. Otherwise new accounts would come before an account that uses its webhooks. */
const USUAL_MS = 5;
/** After so long, half of the used time is forgotten. */
const HALF_LIFE_MS = 60_000;

export class ThreadTime {
  /** The milliseconds of the processor that each account has used in costly reads. */
  readonly #used = new Map<string, number>();
  /** The work of each account, the oldest first. The account with the last turn comes last. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #halvedAt = performance.now();

  /** Does the work in a later round, after earlier work of the account. The work must not throw. */
  atTurn(account: string, work: () => void): void {
    if (!this.#waiting.size) setImmediate(this.#round);
    const own = this.#waiting.get(account) ?? [];
    this.#waiting.set(account, own);
    own.push(work);
  }

  readonly #round = (): void => {
    const usedBy = (account: string) => this.#used.get(account) ?? 0;
    const [account, own] = [...this.#waiting].reduce((least, one) => (usedBy(one[0]) < usedBy(least[0]) ? one : least));
    const begun = process.threadCpuUsage();
    own.shift()!();
    const { user, system } = process.threadCpuUsage(begun);
    const ms = (user + system) / 1000;
    this.#waiting.delete(account);
    if (own.length) this.#waiting.set(account, own);
    if (ms > USUAL_MS) this.#used.set(account, usedBy(account) + ms);
    if (performance.now() - this.#halvedAt > HALF_LIFE_MS) this.#halve();
    if (this.#waiting.size) setImmediate(this.#round);
  };

  #halve(): void {
    this.#halvedAt = performance.now();
    for (const [account, used] of this.#used)
      if (used < 2) this.#used.delete(account);
      else this.#used.set(account, used / 2);
  }
}
