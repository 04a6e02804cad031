/** The most requests of an address in a second that ask the database. A machine needs a few for an installation. */
const QUESTIONS_MAX = 100;

/** Counts the questions of each address to the database in the present second. */
export class Questions {
  #second = 0;
  #counts = new Map<string, number>();

  count(address: string): void {
    const counts = this.#present();
    counts.set(address, (counts.get(address) ?? 0) + 1);
  }

  areMany(address: string): boolean {
    return (this.#present().get(address) ?? 0) >= QUESTIONS_MAX;
  }

  #present(): Map<string, number> {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#counts = new Map();
    }
    return this.#counts;
  }
}
