/**
 * Limits the tasks that call one host at once, so that no host holds all places of a lane. Accounts that name the same host
 * share its places, so that none of them keeps the others from it. Each process counts alone.
 */
import { hostOf } from './public-address.ts';

/** The tasks of a host beyond the first of each account. */
const SHARED_MAX = 8;
/** The tasks of one account at a host. */
const PER_ACCOUNT_MAX = 4;
/** An account that has not asked again for so long waits no more. Tasks ask again after shorter rests. */
const WAITING_MS = 15_000;

interface Host {
  taken: number;
  /** The tasks by account. */
  running: Map<string, number>;
  /** The accounts without a place that asked for one, the first first, with the time of their last question. */
  waiting: Map<string, number>;
}

export class HostPlaces {
  readonly #most: number;
  readonly #hosts = new Map<string, Host>();

  /** @param most the most tasks of one host; above eight, each account has one */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Does the work, or returns undefined if enough tasks call the host of the URL already. A task keeps its place until its
   * end. An earlier end at a closed port would tell other accounts that the port is closed.
   */
  async during<T>({ url, account }: { url: string; account: string }, work: () => Promise<T>): Promise<T | undefined> {
    const name = hostOf(new URL(url));
    const host = this.#hosts.get(name) ?? { taken: 0, running: new Map(), waiting: new Map() };
    this.#hosts.set(name, host);
    if (!this.#admits(host, account)) return undefined;
    const { running } = host;
    host.taken++;
    running.set(account, (running.get(account) ?? 0) + 1);
    try {
      return await work();
    } finally {
      host.taken--;
      const others = running.get(account)! - 1;
      if (others) running.set(account, others);
      else running.delete(account);
      if (!running.size) this.#hosts.delete(name);
    }
  }

  /** An account with tasks gets no place before the accounts that wait. So the places go in turn. */
  #admits({ taken, running, waiting }: Host, account: string): boolean {
    const now = performance.now();
    for (const [one, askedAt] of waiting) if (askedAt < now - WAITING_MS) waiting.delete(one);
    const own = running.get(account) ?? 0;
    if (own) return own < PER_ACCOUNT_MAX && taken < Math.min(SHARED_MAX, this.#most) && !waiting.size;
    const ahead = waiting.has(account) ? [...waiting.keys()].indexOf(account) : waiting.size;
    if (taken + ahead < this.#most) return waiting.delete(account) || true;
    waiting.set(account, now);
    return false;
  }
}
