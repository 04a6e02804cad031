/** The lanes with due tasks. A clock that was ahead lets tasks rest for too long, so they become due when it is right. */
import type { Database } from '../../entities/database/database.ts';
import { DUE_LANES, WAKE_SLEEPERS } from '../../entities/tasks/lease.ts';

/** The longest rest of a task, with some room: several tasks rest for a day. A start must not bring them all forward. */
const REST_SECONDS_MAX = 30 * 3600;
/** A clock may be set back by so much without consequences. */
const CLOCK_MS = 5_000;

export class DueLanes {
  readonly #db: Database;
  readonly #lanes: string[];
  readonly #onError: (error: unknown) => void;
  /** The time of the database at the last look. */
  #time: Date | undefined;

  constructor(db: Database, lanes: string[], onError: (error: unknown) => void) {
    this.#db = db;
    this.#lanes = lanes;
    this.#onError = onError;
  }

  /** Returns the lanes that have due tasks. */
  async look(): Promise<string[]> {
    const found = await DUE_LANES.first(this.#db, [this.#lanes]);
    const { lanes, time } = found!;
    const before = this.#time;
    const wentBack = before !== undefined && time.getTime() < before.getTime() - CLOCK_MS;
    const woken = !before || wentBack ? await WAKE_SLEEPERS.all(this.#db, [wentBack ? 0 : REST_SECONDS_MAX]) : [];
    this.#time = time;
    if (wentBack)
      this.#onError(
        new Error(`The clock of the database went back from ${before.toISOString()} to ${time.toISOString()}.`),
      );
    return woken.length ? this.#lanes : lanes;
  }
}
