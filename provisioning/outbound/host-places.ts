/** Limits the tasks that call one host at once, so that no host holds all places of a lane. Each process counts alone. */
import { hostOf } from './public-address.ts';

const TASKS_MAX = 8;

export class HostPlaces {
  readonly #taken = new Map<string, number>();

  /** Does the work, or returns undefined if enough tasks call the host of the URL already. */
  async during<T>(url: string, work: () => Promise<T>): Promise<T | undefined> {
    const host = hostOf(new URL(url));
    const taken = this.#taken.get(host) ?? 0;
    if (taken >= TASKS_MAX) return undefined;
    this.#taken.set(host, taken + 1);
    try {
      return await work();
    } finally {
      const left = this.#taken.get(host)! - 1;
      if (left) this.#taken.set(host, left);
      else this.#taken.delete(host);
    }
  }
}
