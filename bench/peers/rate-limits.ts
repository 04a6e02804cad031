/** The rate limits of the handwritten server: windows in memory, and their headers. */
import type { FastifyReply } from 'fastify';

/** The quota of `spawnService`. */
const QUOTA = 1_000_000;

/** A sliding window of calls, as the service counts them. */
class Window {
  readonly #name: string;
  readonly #seconds: number;
  #index = 0;
  #current = 0;
  #before = 0;

  constructor(name: string, seconds: number) {
    this.#name = name;
    this.#seconds = seconds;
  }

  get policy() {
    return `"${this.#name}";q=${QUOTA};w=${this.#seconds}`;
  }

  /** Counts a call at this second. @returns the calls that are left */
  take(now: number): number {
    const index = Math.floor(now / this.#seconds);
    if (index !== this.#index) {
      this.#before = index === this.#index + 1 ? this.#current : 0;
      this.#current = 0;
      this.#index = index;
    }
    const weight = Math.min(1, 1 - (now - index * this.#seconds) / this.#seconds);
    return Math.floor(QUOTA - ++this.#current - this.#before * weight);
  }

  show(left: number, now: number) {
    return `"${this.#name}";r=${left};t=${this.resetIn(now)}`;
  }

  resetIn(now: number) {
    return Math.max(1, Math.ceil((this.#index + 1) * this.#seconds - now));
  }
}

const windows = new Map<string, Window[]>();
const windowsOf = (id: string, minute: string, hour: string): Window[] => {
  const known = windows.get(id);
  if (known) return known;
  const made = [new Window(minute, 60), new Window(hour, 3600)];
  windows.set(id, made);
  return made;
};

/** Counts a call for its credential and its account, and adds the headers. @returns whether it is within the limits */
export function take(credentialId: string, accountId: string, reply: FastifyReply): boolean {
  const now = Date.now() / 1000;
  const all = [...windowsOf(credentialId, 'minute', 'hour'), ...windowsOf(accountId, 'account', 'account_hour')];
  let tightest = all[0]!;
  let least = Number.POSITIVE_INFINITY;
  let shown = '';
  let policy = '';
  for (const window of all) {
    const left = window.take(now);
    if (left < 0) return false;
    shown += `${shown && ', '}${window.show(left, now)}`;
    policy += `${policy && ', '}${window.policy}`;
    if (left < least) [tightest, least] = [window, left];
  }
  reply.header('ratelimit-policy', policy).header('ratelimit', shown);
  reply.header('x-ratelimit-limit', String(QUOTA)).header('x-ratelimit-remaining', String(least));
  reply.header('x-ratelimit-reset', String(Math.floor(now) + tightest.resetIn(now)));
  return true;
}
