/**
 * Limits the tasks that call one host at once, so that no host holds all places of a lane. Accounts that name the same host
 * share its places, so that none of them keeps the others from it. Each process counts alone.
 */
import { hostOf } from './public-address.ts';

/** The tasks of a host beyond the first of each account. */
const SHARED_MAX = 8;
/** The tasks of one account at a host. */
const PER_ACCOUNT_MAX = 4;
/** All tasks without a place ask so many times a second together. Each question is a lease of the task, and costs the database. */
const QUESTIONS_PER_SECOND = 200;
/** The shortest and the longest rest before a task asks again. */
const REST_SECONDS_MIN = 1;
export const REST_SECONDS_MAX = 60;
/** An account that has not asked again for so long after its rest waits no more. */
const LATE_MS = 15_000;

interface Host {
  taken: number;
  /** The tasks by account. */
  running: Map<string, number>;
  /** The accounts without a place that asked for one, the first first, with the time until which they wait. */
  waiting: Map<string, number>;
}

export class HostPlaces {
  readonly #most: number;
  readonly #hosts = new Map<string, Host>();
  /** When the next task without a place may ask again. */
  #nextQuestion = 0;

  /** @param most the most tasks of one host; above eight, each account has one */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Does the work, or a rest of some seconds if enough tasks call the host of the URL already. A task keeps its place until
   * its end. An earlier end at a closed port would tell other accounts that the port is closed.
   */
  async during<T>(
    { url, account }: { url: string; account: string },
    work: () => Promise<T>,
    rest: (seconds: number) => T,
  ): Promise<T> {
    const name = hostOf(new URL(url));
    const host = this.#hosts.get(name) ?? { taken: 0, running: new Map(), waiting: new Map() };
    this.#hosts.set(name, host);
    const restMs = this.#restMs(host, account);
    if (restMs) return rest(restMs / 1000);
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

  /** The rest of a task without a place; 0: it gets one. */
  #restMs(host: Host, account: string): number {
    const now = performance.now();
    if (this.#admits(host, account, now)) return 0;
    this.#nextQuestion = Math.max(this.#nextQuestion, now) + 1000 / QUESTIONS_PER_SECOND;
    this.#nextQuestion = Math.min(this.#nextQuestion, now + REST_SECONDS_MAX * 1000);
    const restMs = Math.max(this.#nextQuestion - now, REST_SECONDS_MIN * 1000);
    if (!host.running.has(account)) host.waiting.set(account, now + restMs + LATE_MS);
    return restMs;
  }

  /** An account with tasks gets no place before the accounts that wait. So the places go in turn. */
  #admits({ taken, running, waiting }: Host, account: string, now: number): boolean {
    for (const [one, until] of waiting) if (until < now) waiting.delete(one);
    const own = running.get(account) ?? 0;
    if (own) return own < PER_ACCOUNT_MAX && taken < Math.min(SHARED_MAX, this.#most) && !waiting.size;
    const ahead = waiting.has(account) ? [...waiting.keys()].indexOf(account) : waiting.size;
    return taken + ahead < this.#most && (waiting.delete(account) || true);
  }
}
