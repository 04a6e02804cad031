/** Repeatable chance: the seed and the name of an actor decide every draw. */
export class Chance {
  #state: number;

  constructor(seed: number, name: string) {
    this.#state = [...name].reduce((state, letter) => Math.imul(state ^ letter.charCodeAt(0), 16_777_619), seed | 0);
  }

  /** From 0 to below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  oneIn(count: number): boolean {
    return this.next() * count < 1;
  }

  /** Picks one of them, or undefined if there are none. */
  pick<T>(things: Iterable<T>): T | undefined {
    const list = [...things];
    return list[Math.floor(this.next() * list.length)];
  }

  /** Picks one of them; a heavier one comes more often. */
  weigh<T>(things: readonly (readonly [weight: number, thing: T])[]): T {
    let rest = this.next() * things.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, thing] of things) {
      rest -= weight;
      if (rest < 0) return thing;
    }
    return things.at(-1)![1];
  }
}
