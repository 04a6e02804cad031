/** The lists of all instances. They have the user data and the addresses of each, so a long list comes in parts. */
import type { LxcClient } from './client.ts';
import { ANSWER_BYTES_MAX, TooLong } from './endpoint.ts';
import type { Instance } from './instance.ts';
import type { StatedInstance } from './meter.ts';

/** Instances of one part. An answer shows the user data twice, and may write each byte of it as six. */
const PART = 20;
/** The most bytes of an instance in a part with states, on average. A hundred network cards need a fifth. */
const STATED_BYTES_MAX = 256 * 2 ** 10;
/** The most bytes of one instance with its state. User data take at most 0.75 MiB; the rest is for keys and the state. */
const ALONE_BYTES_MAX = 1.25 * 2 ** 20;
/** Looks in which a state is read alone after it was too long. To find it in its part again costs ten requests. */
const ALONE_LOOKS = 10;

/** 1: instances; 2: with their states. */
type Recursion = 1 | 2;

/** Lists the instances of one engine. */
export class InstanceLists {
  readonly #client: LxcClient;
  /** The names of instances whose state was too long, with the looks that still read it alone. */
  #long = new Map<string, number>();

  constructor(client: LxcClient) {
    this.#client = client;
  }

  /** All instances, by one request, or in parts if one answer would be too long. */
  async instances(signal: AbortSignal): Promise<Instance[]> {
    const whole = await this.#ask(1, signal);
    return whole ?? this.#inParts(1, await this.#names(signal), signal);
  }

  /**
   * Like `instances`, with their states, but without those that are too long. Root in a machine can make its state as long
   * as it likes. The next calls read it alone and last. If that fails or takes too long, only this state is missing.
   */
  async states(signal: AbortSignal): Promise<StatedInstance[]> {
    const whole = this.#long.size ? undefined : await this.#ask(2, signal);
    if (whole) return whole;
    const names = await this.#names(signal);
    const long = this.#long;
    const [alone, rest] = [names.filter((name) => long.has(name)), names.filter((name) => !long.has(name))];
    this.#long = new Map(alone.map((name) => [name, long.get(name)!]));
    const last = await this.#inParts(1, alone, signal);
    const found = await this.#inParts(2, rest, signal);
    for (const one of last) {
      const [stated] = (await this.#ask(2, signal, [one.name]).catch(() => undefined)) ?? [];
      const looks = stated ? this.#long.get(one.name)! - 1 : ALONE_LOOKS;
      if (looks) this.#long.set(one.name, looks);
      else this.#long.delete(one.name);
      found.push(stated ?? one);
    }
    return found;
  }

  async #names(signal: AbortSignal): Promise<string[]> {
    const paths = await this.#client.get<string[]>('/1.0/instances', signal);
    return paths.map((one) => one.split('?')[0]!.split('/').at(-1)!);
  }

  async #inParts(recursion: Recursion, names: readonly string[], signal: AbortSignal): Promise<StatedInstance[]> {
    const found: StatedInstance[] = [];
    for (let from = 0; from < names.length; from += PART)
      found.push(...(await this.#part(recursion, names.slice(from, from + PART), signal)));
    return found;
  }

  /** Halves a part that is too long. */
  async #part(recursion: Recursion, names: readonly string[], signal: AbortSignal): Promise<StatedInstance[]> {
    const found = await this.#ask(recursion, signal, names);
    if (found) return found;
    if (names.length === 1) {
      if (recursion === 1) throw new TooLong();
      this.#long.set(names[0]!, ALONE_LOOKS);
      return this.#part(1, names, signal);
    }
    const half = names.length >> 1;
    const first = await this.#part(recursion, names.slice(0, half), signal);
    return [...first, ...(await this.#part(recursion, names.slice(half), signal))];
  }

  /**
   * Lists all instances, or those with these names.
   * @returns undefined if the answer would be too long
   */
  async #ask(recursion: Recursion, signal: AbortSignal, names?: readonly string[]) {
    const filter = names ? `&filter=${encodeURIComponent(`name eq ${names.join(' or name eq ')}`)}` : '';
    const stated = recursion === 2 && names && Math.max(ALONE_BYTES_MAX, names.length * STATED_BYTES_MAX);
    const bytesMax = stated || ANSWER_BYTES_MAX;
    try {
      const path = `/1.0/instances?recursion=${recursion}${filter}`;
      const found = await this.#client.get<StatedInstance[]>(path, signal, undefined, bytesMax);
      return found.map(withoutLong);
    } catch (error) {
      if (error instanceof TooLong) return undefined;
      throw error;
    }
  }
}

/** The part of an instance that the driver uses. The user data and the addresses of its network cards can be long. */
function withoutLong({ name, type, status, location, config, devices, state }: StatedInstance): StatedInstance {
  const kept = { name, status, location, ...(type && { type }), ...(devices && { devices }) };
  const { 'cloud-init.user-data': _, ...short } = config ?? {};
  const cards = Object.entries(state?.network ?? {}).map(([card, { host_name, counters }]) => [
    card,
    { host_name, counters },
  ]);
  return {
    ...kept,
    ...(config && { config: short }),
    ...(state !== undefined && { state: state && { ...state, network: Object.fromEntries(cards) } }),
  };
}
