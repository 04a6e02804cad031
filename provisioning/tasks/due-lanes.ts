/** The lanes with due tasks. A clock that was ahead lets tasks rest and leases last for too long. The worker mends both when it is right. */
import type { Database } from '../../entities/database/database.ts';
import { DUE_LANES, WAKE_SLEEPERS } from '../../entities/tasks/lease.ts';

/** The longest rest of a task, with some room: several tasks rest for a day. A start must not bring them all forward. */
const REST_SECONDS_MAX = 30 * 3600;
/** A clock may be set back by so much without consequences. */
const CLOCK_MS = 5_000;

export class DueLanes {
  readonly #db: Database;
  readonly #lanes: string[];
  readonly #leaseSeconds: number;
  readonly #onError: (error: unknown) => void;
  /** The time of the database at the last look. */
  #time: Date | undefined;

  constructor(db: Database, lanes: string[], leaseSeconds: number, onError: (error: unknown) => void) {
    this.#db = db;
    this.#lanes = lanes;
    this.#leaseSeconds = leaseSeconds;
    this.#onError = onError;
  }

  /** Returns the lanes that have due tasks. */
  async look(): Promise<string[]> {
    const found = await DUE_LANES.first(this.#db, [this.#lanes]);
    const { lanes, time } = found!;
    const before = this.#time;
    const wentBack = before !== undefined && time.getTime() < before.getTime() - CLOCK_MS;
    const mayBeLate = !before || wentBack;
    const longest = [wentBack ? 0 : REST_SECONDS_MAX, this.#leaseSeconds];
    const woken = mayBeLate ? await WAKE_SLEEPERS.all(this.#db, longest) : [];
    this.#time = time;
    if (wentBack)
      this.#onError(
        new Error(`The clock of the database went back from ${before.toISOString()} to ${time.toISOString()}.`),
      );
    return woken.length ? this.#lanes : lanes;
  }
}
