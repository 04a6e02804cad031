/**
 * The accounts share the time of the thread. Receivers choose their certificates, and OpenSSL checks some of them for 50 ms. A
 * round of the event loop reads for one account: the one that has used the least time. So an account with costly receivers
 * delays another by one of its reads.
 */

/** After so long, half of the used time is forgotten. */
const HALF_LIFE_MS = 60_000;

export class ThreadTime {
  /** The used milliseconds of each account. */
  readonly #used = new Map<string, number>();
  /** The work of each account, the oldest first. */
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
    const begun = performance.now();
    own.shift()!();
    const ended = performance.now();
    if (!own.length) this.#waiting.delete(account);
    this.#used.set(account, usedBy(account) + ended - begun);
    if (ended - this.#halvedAt > HALF_LIFE_MS) this.#halve(ended);
    if (this.#waiting.size) setImmediate(this.#round);
  };

  #halve(now: number): void {
    this.#halvedAt = now;
    for (const [account, used] of this.#used)
      if (used < 2) this.#used.delete(account);
      else this.#used.set(account, used / 2);
  }
}
