/** Work in few places, at which the networks of callers take turns. So a flood from one network delays that network. */
import { ApiError } from '../../../entities/errors.ts';

interface Waiter {
  begin: () => void;
  refuse: (error: ApiError) => void;
}

export class Turns {
  #free: number;
  readonly #limits: { waiting: number; ofNetwork: number };
  /** The waiting work of each network. The network whose turn comes next is the first. */
  readonly #queues = new Map<string, Waiter[]>();
  #waiting = 0;

  /** @param limits the most waiting work: of all networks, and of one */
  constructor(places: number, limits: { waiting: number; ofNetwork: number }) {
    this.#free = places;
    this.#limits = limits;
  }

  /** Does the work at the network's turn. @throws ApiError rate_limited if too much waits, or the error of the work */
  async run<T>(network: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#turn(network);
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(network: string): Promise<void> {
    const queue = this.#queues.get(network) ?? [];
    if (queue.length >= this.#limits.ofNetwork) throw tooMany();
    if (this.#waiting >= this.#limits.waiting) this.#shorten(queue.length);
    return new Promise((begin, refuse) => {
      queue.push({ begin, refuse });
      this.#queues.set(network, queue);
      this.#waiting++;
    });
  }

  /** Refuses the last of the longest queue. @throws ApiError rate_limited if the new work would make another as long */
  #shorten(length: number): void {
    const longest = [...this.#queues.values()].reduce((one, other) => (other.length > one.length ? other : one));
    if (longest.length <= length + 1) throw tooMany();
    longest.pop()!.refuse(tooMany());
    this.#waiting--;
  }

  #next(): void {
    const [first] = this.#queues;
    if (!first) return void this.#free++;
    const [network, queue] = first;
    this.#queues.delete(network);
    queue.shift()!.begin();
    this.#waiting--;
    if (queue.length) this.#queues.set(network, queue);
  }
}

const tooMany = () =>
  new ApiError('rate_limited', 'The service is checking too many passwords at the moment.', { retryAfter: 2 });
