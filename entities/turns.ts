/**
 * Few places for work, at which groups of callers take turns. So a flood from one group delays that group. The group goes first
 * whose last turn is the longest ago. So a group with little work waits for few of those that always have some.
 */
import { randomInt } from 'node:crypto';
import { ApiError } from './errors.ts';
import { freeSiteOf } from './networks.ts';

const RETRY_SECONDS = 2;

export interface TurnLimits {
  /** How much work runs at once. */
  places: number;
  /** How much work of one group runs at once. Default: as much as there are places. */
  placesOfGroup?: number;
  /** How much work waits at most: of all groups, and of one. */
  waiting: number;
  waitingOfGroup: number;
  /** The sentence for a refused caller. */
  refusal: string;
}

interface Waiter {
  rank: number;
  arrival: number;
  begin: (leave: () => void) => void;
  refuse: (error: ApiError) => void;
}
interface Group {
  running: number;
  turns: number;
  /** The number of its last turn. A new group begins as if it just had one. */
  last: number;
  waiters: Waiter[];
}

/** The idle groups whose last turns count. More would let as many newcomers go before a group that waits. */
const IDLE_MAX = 1_000;

/** The error of work whose caller has gone. */
const gone = () => new ApiError('unavailable', 'The caller has gone.', { retryAfter: RETRY_SECONDS });

export class Turns {
  readonly #limits: TurnLimits;
  readonly #placesOfGroup: number;
  /** The groups with work. */
  readonly #groups = new Map<string, Group>();
  /** The last turns of idle groups. The group that became idle first is the first. */
  readonly #idle = new Map<string, number>();
  #turn = 0;
  #running = 0;
  #waiting = 0;
  #arrivals = 0;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
    this.#placesOfGroup = limits.placesOfGroup ?? limits.places;
  }

  /** How much work waits. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Does the work at the turn of its group.
   * @param signal ends the wait of a caller who has gone
   * @param rank as for `enter`
   * @throws ApiError rate_limited if too much waits, unavailable at the signal, or the error of the work
   */
  async run<T>(group: string, work: () => Promise<T>, signal?: AbortSignal, rank?: number): Promise<T> {
    const leave = await this.enter(group, signal, rank);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /**
   * Waits for the turn of the group.
   * @param signal ends the wait of a caller who has gone
   * @param rank work of a lower rank goes first within its group. Where too much waits, it takes the place of a higher one. Each
   *   third turn goes by arrival
   * @returns a function that leaves the place
   * @throws ApiError rate_limited if too much waits, or unavailable at the signal
   */
  async enter(name: string, signal?: AbortSignal, rank = 0): Promise<() => void> {
    if (signal?.aborted) throw gone();
    const group = this.#groups.get(name) ?? this.#newGroup(name);
    if (this.#running < this.#limits.places && group.running < this.#placesOfGroup) return this.#begin(name, group);
    if (group.waiters.length >= this.#limits.waitingOfGroup) this.#outrank(group, rank);
    else if (this.#waiting >= this.#limits.waiting) this.#shorten(group, rank);
    this.#groups.set(name, group);
    this.#waiting++;
    const { promise, resolve: begin, reject: refuse } = Promise.withResolvers<() => void>();
    const waiter = { rank, arrival: ++this.#arrivals, begin, refuse };
    const later = group.waiters.findIndex((other) => other.rank > rank);
    group.waiters.splice(later < 0 ? group.waiters.length : later, 0, waiter);
    const forget = () => this.#forget(name, group, waiter);
    signal?.addEventListener('abort', forget, { once: true });
    return promise.finally(() => signal?.removeEventListener('abort', forget));
  }

  /** Takes work whose caller has gone out of the queue. */
  #forget(name: string, group: Group, waiter: Waiter): void {
    const index = group.waiters.indexOf(waiter);
    if (index < 0) return;
    group.waiters.splice(index, 1);
    this.#waiting--;
    this.#forgetIdle(name, group);
    waiter.refuse(gone());
  }

  #newGroup(name: string): Group {
    const last = this.#idle.get(name) ?? this.#turn;
    this.#idle.delete(name);
    return { running: 0, turns: 0, last, waiters: [] };
  }

  /** Begins work of a group, whose next turn comes after those of the others. */
  #begin(name: string, group: Group): () => void {
    this.#running++;
    group.running++;
    group.last = ++this.#turn;
    this.#groups.set(name, group);
    return () => {
      this.#running--;
      group.running--;
      this.#forgetIdle(name, group);
      this.#next();
    };
  }

  #forgetIdle(name: string, { running, waiters, last }: Group): void {
    if (running || waiters.length || !this.#groups.delete(name)) return;
    this.#idle.set(name, last);
    if (this.#idle.size > IDLE_MAX) this.#idle.delete(this.#idle.keys().next().value!);
  }

  #next(): void {
    if (!this.#waiting) return;
    let next: [string, Group] | undefined;
    for (const entry of this.#groups) {
      const [, { waiters, running, last }] = entry;
      if (waiters.length && running < this.#placesOfGroup && last < (next?.[1].last ?? Infinity)) next = entry;
    }
    if (!next) return;
    this.#waiting--;
    this.#take(next[1]).begin(this.#begin(...next));
  }

  /** Takes work out of the queue of a group. Each third is the one that came first, so no rank waits for ever. */
  #take(group: Group): Waiter {
    const { waiters } = group;
    const isOldest = ++group.turns % 3 === 0;
    const oldest = isOldest ? Math.min(...waiters.map(({ arrival }) => arrival)) : undefined;
    const index = isOldest ? waiters.findIndex(({ arrival }) => arrival === oldest) : 0;
    return waiters.splice(index, 1)[0]!;
  }

  /**
   * Makes room for new work by refusing the last of its group.
   * @throws ApiError rate_limited if the rank of the new work is not lower
   */
  #outrank({ waiters }: Group, rank: number): void {
    const last = waiters.at(-1);
    if (!last || last.rank <= rank) throw this.#tooMany();
    waiters.pop();
    this.#waiting--;
    last.refuse(this.#tooMany());
  }

  /**
   * Makes room for new work of a group. Refuses the last of the longest queue. Chance decides among queues of the same length
   * and the new work. So many groups can keep no other group out.
   * @throws ApiError rate_limited if it refuses the new work
   */
  #shorten(own: Group, rank: number): void {
    const length = own.waiters.length + 1;
    const groups = [...this.#groups].filter(([, { waiters }]) => waiters.length);
    const most = Math.max(...groups.map(([, { waiters }]) => waiters.length));
    if (most < length) {
      this.#outrank(own, rank);
      return;
    }
    const longest = groups.filter(([, { waiters }]) => waiters.length === most);
    const chosen = longest[most > length ? 0 : randomInt(longest.length + 1)];
    if (!chosen) throw this.#tooMany();
    const [name, group] = chosen;
    group.waiters.pop()!.refuse(this.#tooMany());
    this.#waiting--;
    this.#forgetIdle(name, group);
  }

  #tooMany(): ApiError {
    return new ApiError('rate_limited', this.#limits.refusal, { retryAfter: RETRY_SECONDS });
  }
}

interface CustomerTurnLimits extends TurnLimits {
  /** How much work of the free accounts of one site runs at once. */
  placesOfSite: number;
}
/** The caller of the work. */
export interface Customer {
  accountId: string;
  /** The IP address of the caller. */
  address: string | null;
  /** Whether the account ever had money. */
  hasPaid: boolean;
}

/** After so many other accounts, an account counts as new. */
const REMEMBERED_MAX = 50_000;

/**
 * Turns for calls to the outside, which every account may cause. Each account waits for its own work. Free accounts are easy to
 * make. So those of a site share turns, and all have half of the places. The account goes first whose last turn is the longest
 * ago. So accounts of one site delay a neighbour by one turn each, however often they come.
 */
export class CustomerTurns {
  /** The number of the last turn of each free account, the oldest first. */
  readonly #lastTurns = new Map<string, number>();
  #turn = 0;
  readonly #accounts: Turns;
  readonly #free: Turns;
  readonly #sites: Turns;

  constructor({ placesOfSite, ...limits }: CustomerTurnLimits) {
    this.#accounts = new Turns(limits);
    // An account waits at its site once, and here for itself. So a neighbour waits behind the accounts, not behind their work.
    this.#free = new Turns({ ...limits, places: Number.POSITIVE_INFINITY, placesOfGroup: 1 });
    const sites = { places: limits.places / 2, placesOfGroup: placesOfSite, waitingOfGroup: limits.waiting };
    this.#sites = new Turns({ ...limits, ...sites });
  }

  /**
   * Does the work at the turn of the customer.
   * @param signal ends the wait of a customer who has gone, or was refused
   * @throws ApiError rate_limited if too much waits, unavailable at the signal, or the error of the work
   */
  run<T>({ accountId, address, hasPaid }: Customer, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const atTurn = () => this.#accounts.run(accountId, work, signal);
    if (hasPaid) return atTurn();
    const atSite = () => {
      const begin = () => {
        this.#remember(accountId);
        return atTurn();
      };
      return this.#sites.run(freeSiteOf(address ?? ''), begin, signal, this.#lastTurns.get(accountId));
    };
    return this.#free.run(accountId, atSite, signal);
  }

  #remember(accountId: string): void {
    this.#lastTurns.delete(accountId);
    this.#lastTurns.set(accountId, ++this.#turn);
    const [oldest] = this.#lastTurns.keys();
    if (this.#lastTurns.size > REMEMBERED_MAX) this.#lastTurns.delete(oldest!);
  }
}
