/** Counts calls in the memory of this process. */
import { type Counted, load, type Quota, type RateLimitStore, type Taken, WINDOW_SECONDS } from './window.ts';

interface Count {
  /** The number of the window since the epoch. */
  index: number;
  current: number;
  before: number;
}
interface Entry {
  minute: Count;
  hour: Count;
}

const SWEEP_MS = 60_000;
/** The names that a process remembers at most. Each takes some 250 bytes. Anybody makes accounts, so those have a limit, too. */
const ADDRESSES_MAX = 100_000;
const CREDENTIALS_MAX = 200_000;

/** The counts by name. Two generations: the older goes as a whole, because finding the oldest entry of a large map is slow. */
class Names {
  readonly #most: number;
  #recent = new Map<string, Entry>();
  #older = new Map<string, Entry>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  get(name: string): Entry | undefined {
    return this.#recent.get(name) ?? this.#older.get(name);
  }

  set(name: string, entry: Entry): void {
    if (this.#recent.size >= this.#most / 2 && !this.#recent.has(name)) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(name, entry);
  }

  forget(isOver: (name: string, entry: Entry) => boolean): void {
    for (const entries of [this.#recent, this.#older])
      for (const [name, entry] of entries) if (isOver(name, entry)) entries.delete(name);
  }
}

export class MemoryRateLimits implements RateLimitStore {
  /** Also accounts. */
  readonly #credentials = new Names(CREDENTIALS_MAX);
  readonly #addresses = new Names(ADDRESSES_MAX);
  readonly #now: () => number;
  #sweptAt = 0;

  /** @param now milliseconds since the epoch */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** The number of remembered names. */
  get size(): number {
    return this.#credentials.size + this.#addresses.size;
  }

  async take(quotas: readonly Quota[]): Promise<Taken[]> {
    const seconds = this.#now() / 1000;
    this.#sweep(seconds);
    const entries = quotas.map(({ name }) => this.#entryOf(name, seconds));
    const taken = entries.map(({ minute, hour }, i): Taken => {
      const counts = {
        minute: counted(minute, seconds, WINDOW_SECONDS.minute),
        hour: counted(hour, seconds, WINDOW_SECONDS.hour),
      };
      const { perMinute, perHour } = quotas[i]!;
      const fits = (of: 'minute' | 'hour', quota: number) => load(counts[of], WINDOW_SECONDS[of]) + 1 <= quota;
      return { allowed: fits('minute', perMinute) && fits('hour', perHour), ...counts };
    });
    if (!taken.every(({ allowed }) => allowed)) return taken;
    for (const [i, { minute, hour }] of taken.entries()) {
      minute.current = ++entries[i]!.minute.current;
      hour.current = ++entries[i]!.hour.current;
    }
    return taken;
  }

  #entryOf(name: string, seconds: number): Entry {
    const names = isNetwork(name) ? this.#addresses : this.#credentials;
    const known = names.get(name);
    const entry: Entry = {
      minute: roll(known?.minute, seconds, WINDOW_SECONDS.minute),
      hour: roll(known?.hour, seconds, WINDOW_SECONDS.hour),
    };
    names.set(name, entry);
    return entry;
  }

  /** Forgets names whose calls no longer count. Those with a limit of a minute go after two, the others after two hours. */
  #sweep(seconds: number) {
    if (seconds * 1000 - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = seconds * 1000;
    const over = ({ index }: Count, length: number) => index + 1 < Math.floor(seconds / length);
    const isOver = (name: string, { minute, hour }: Entry) =>
      name.startsWith('ip:') ? over(minute, WINDOW_SECONDS.minute) : over(hour, WINDOW_SECONDS.hour);
    for (const names of [this.#addresses, this.#credentials]) names.forget(isOver);
  }
}

/** Whether the name is the hash of an address. `ip:` has a limit of a minute, and `net:` one of an hour. */
const isNetwork = (name: string): boolean => name.startsWith('ip:') || name.startsWith('net:');

/** The count at this time. A window that is over becomes the window before. */
function roll(count: Count | undefined, seconds: number, length: number): Count {
  const index = Math.floor(seconds / length);
  if (!count) return { index, current: 0, before: 0 };
  if (count.index >= index) return count;
  return { index, current: 0, before: count.index === index - 1 ? count.current : 0 };
}

const counted = ({ index, current, before }: Count, seconds: number, length: number): Counted => ({
  current,
  before,
  elapsed: Math.max(0, seconds - index * length),
});
