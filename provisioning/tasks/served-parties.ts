/** The parties that a lane has served lately, the longest ago first. The memory of a worker holds them, up to a limit. */

const PARTIES_MAX = 1_000;

export class ServedParties {
  readonly #parties = new Map<string, true>();

  /** Notes that a party was served now. Forgets the one that was served longest ago, above the limit. */
  note(party: string): void {
    this.#parties.delete(party);
    this.#parties.set(party, true);
    if (this.#parties.size > PARTIES_MAX) this.#parties.delete(this.#parties.keys().next().value!);
  }

  /** Returns the place of each party as JSON, the lowest for the longest ago. */
  places(): string {
    return JSON.stringify(Object.fromEntries([...this.#parties.keys()].map((party, place) => [party, place])));
  }
}
