/**
 * Things of accounts in a limited memory. If it is full, the oldest thing of the account with most gives room. So a flood of
 * one account removes nothing of another.
 */
export class Shares<T> {
  /** The most things of all accounts together. */
  readonly #max: number;
  readonly #accounts = new Map<string, Map<string, T>>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** How many things there are. */
  get size(): number {
    return this.#size;
  }

  get(account: string, key: string): T | undefined {
    return this.#accounts.get(account)?.get(key);
  }

  /** How many things of the account there are. */
  sizeOf(account: string): number {
    return this.#accounts.get(account)?.size ?? 0;
  }

  /** All things, each account's oldest first. */
  all(): T[] {
    return [...this.#accounts.values()].flatMap((things) => [...things.values()]);
  }

  /** Adds a thing under a new key. @returns the thing that gives room, if there is none */
  add(account: string, key: string, thing: T): T | undefined {
    const removed = this.#size < this.#max ? undefined : this.#removeOne();
    const things = this.#accounts.get(account) ?? new Map<string, T>();
    this.#accounts.set(account, things.set(key, thing));
    this.#size++;
    return removed;
  }

  /** Removes the thing, unless it has gone already. */
  remove(account: string, key: string, thing: T): void {
    const things = this.#accounts.get(account);
    if (things?.get(key) !== thing) return;
    things.delete(key);
    if (!things.size) this.#accounts.delete(account);
    this.#size--;
  }

  #removeOne(): T {
    const [account, things] = [...this.#accounts].reduce((most, one) => (one[1].size > most[1].size ? one : most));
    const [key, thing] = things.entries().next().value!;
    this.remove(account, key, thing);
    return thing;
  }
}
