/** Machines of LXD (5 or newer) or Incus (6 or newer). The driver believes the state of an engine, and observes after errors. */
import {
  DriverError,
  type HardwareDriver,
  type MachineKey,
  type MachineSpec,
  type Observation,
  type PowerChange,
  turns,
} from '../driver.ts';
import { LxcClient, pause } from './client.ts';
import { moveOnce, observationsOf } from './copy.ts';
import type { Endpoint } from './endpoint.ts';
import { type EngineOptions, LxcEngine } from './engine.ts';
import {
  type Instance,
  isParked,
  isReady,
  looseCards,
  MARK,
  machinesIn,
  nameOf,
  namesOf,
  observationOf,
  specDigestOf,
} from './instance.ts';
import { limitsOf } from './limits.ts';
import { readingOf, speedOf } from './meter.ts';
import { park, predecessorIn, restore } from './predecessor.ts';
import { UnsafeEngine } from './project.ts';
import { stopOnce } from './restart.ts';
import { type Probe, probeByConnecting } from './ssh-proof.ts';

/** Milliseconds that the driver waits for the proof of a started machine, so that fast ones need no second observation. */
const [PROOF_MS, PROOF_POLL_MS] = [2000, 25];

export interface LxcOptions extends EngineOptions {
  /** The name of the engine. Default: `lxc`, as that of the environment. */
  name?: string;
  /** The endpoints of one server, or of several members of a cluster. */
  endpoints: Endpoint[];
  project: string;
  /** Default: connects to port 22. */
  probe?: Probe;
}

export class LxcDriver implements HardwareDriver {
  readonly name: string;
  readonly simulated = false;
  readonly imageStore: LxcEngine['images'];
  readonly #engine: LxcEngine;
  readonly #probe: Probe;
  readonly #exclusive = turns();

  constructor({ name = 'lxc', endpoints, project, probe = probeByConnecting, ...engine }: LxcOptions) {
    this.name = name;
    this.#engine = new LxcEngine(new LxcClient({ endpoints, project }), engine);
    this.imageStore = this.#engine.images;
    this.#probe = probe;
  }

  capacity(signal: AbortSignal) {
    return this.#engine.hosts(signal);
  }

  about(signal: AbortSignal) {
    return this.#engine.facts.about(signal);
  }

  reachable(_region: string, signal: AbortSignal): Promise<boolean> {
    return this.#engine.reachable(signal);
  }

  async check(signal: AbortSignal): Promise<readonly string[]> {
    const { warnings } = await this.#engine.facts.read(signal).catch((error) => {
      throw error instanceof UnsafeEngine ? new DriverError('rejected', error.message) : error;
    });
    return [...warnings, ...looseCards(await this.#engine.lists.instances(signal))];
  }

  /** Lists machines without looking for their proof. */
  async list(signal: AbortSignal): Promise<Observation[]> {
    const { serverName } = await this.#engine.facts.read(signal);
    return observationsOf(await this.#engine.lists.instances(signal), serverName);
  }

  async meter(signal: AbortSignal) {
    return machinesIn(await this.#engine.lists.states(signal)).flatMap(readingOf);
  }

  async setSpeed(key: MachineKey, portMbps: number, signal: AbortSignal): Promise<void> {
    await this.#exclusive(key, signal, async () => {
      const found = await this.#existing(key, signal);
      await this.#engine.mark(found.name, {}, signal, speedOf(found, portMbps));
    });
  }

  async observe(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    const { serverName } = await this.#engine.facts.read(signal);
    const found = await this.#engine.find(key, signal);
    if (!found) return { order: key.order, generation: key.generation, phase: 'absent', proven: false };
    const seen = observationOf(found, key, serverName);
    const address = found.config?.[MARK.address];
    if (seen.phase !== 'present' || seen.power !== 'on' || !address) return seen;
    return { ...seen, proven: await this.#probe(address, seen.host, signal) };
  }

  create(spec: MachineSpec, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(spec, signal, async () => {
      const found = await this.#finished(spec, signal);
      if (!found) await this.#make(spec, {}, signal);
      else if (found.config?.[MARK.spec] !== specDigestOf(spec))
        throw new DriverError('conflict', `${found.name} was made from another specification.`);
      else if (found.status === 'Stopped') await this.#engine.start(found.name, signal);
      return this.#proven(spec, signal);
    });
  }

  power(key: MachineKey, want: PowerChange, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(key, signal, async () => {
      const found = await this.#idle(key, signal);
      const { name, status } = found;
      const off = status === 'Stopped';
      if (want === 'off') {
        if (!off) await this.#engine.stop(name, true, signal);
        return this.observe(key, signal);
      }
      if (want === 'on') {
        if (!off) return this.observe(key, signal);
      } else if (!(await stopOnce(this.#engine, found, { change, graceful: want === 'restart' }, signal)))
        return this.observe(key, signal);
      await this.#engine.tighten(name, signal);
      await this.#engine.start(name, signal);
      return this.#proven(key, signal);
    });
  }

  /** Keeps the old machine until the new one exists. Without room for both, the old one goes first. */
  rebuild(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(spec, signal, async () => {
      const found = await this.#finished(spec, signal);
      if (found?.config?.[MARK.change] !== change) {
        await this.#engine.requireImage(spec, signal);
        // Leftovers of an earlier rebuild would take the name of the new machine.
        for (const left of await this.#engine.all(spec, signal))
          if (left.name !== found?.name) await this.#engine.remove(left, signal);
        if (found && (await this.#engine.hasRoomFor(spec, found, signal)))
          await this.#replace(found, spec, change, signal);
        else {
          if (found) await this.#engine.remove(found, signal);
          await this.#make(spec, { [MARK.change]: change }, signal);
        }
      }
      await this.#removePredecessor(spec, signal);
      return this.#proven(spec, signal);
    });
  }

  restore(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(key, signal, async () => {
      await this.#finished(key, signal);
      return this.observe(key, signal);
    });
  }

  /** Makes the new machine beside the old one, which comes back as it was if that fails. */
  async #replace(old: Instance, spec: MachineSpec, change: string, signal: AbortSignal): Promise<void> {
    const [first, second] = namesOf(spec);
    try {
      await park(this.#engine, old, change, signal);
      await this.#engine.make(spec, old.name === first ? second : first, { [MARK.change]: change }, signal);
    } catch (error) {
      signal.throwIfAborted();
      // The engine may still be at it. The next call finds out.
      if (error instanceof DriverError && error.code === 'unreachable') throw error;
      await this.#finished(spec, signal, change);
      throw error;
    }
  }

  async #removePredecessor(key: MachineKey, signal: AbortSignal): Promise<void> {
    for (const old of (await this.#engine.all(key, signal)).filter(isParked)) await this.#removeIfPossible(old, signal);
  }

  /** Removes an instance beside the machine. A stuck one has no network, and the deletion of the machine tries again. */
  async #removeIfPossible(instance: Instance, signal: AbortSignal): Promise<void> {
    await this.#engine.remove(instance, signal).catch((error) => {
      if (!(error instanceof DriverError && error.code === 'stuck')) throw error;
    });
  }

  resize(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(spec, signal, async () => {
      const found = await this.#idle(spec, signal);
      const { name, status, config } = found;
      if (config?.[MARK.change] !== change) {
        if (status !== 'Stopped') throw new DriverError('rejected', `${name} is on.`);
        const marks = { ...limitsOf(spec), [MARK.spec]: specDigestOf(spec), [MARK.change]: change };
        await this.#engine.mark(name, marks, signal, this.#engine.resized(spec, found));
      }
      return this.observe(spec, signal);
    });
  }

  move(key: MachineKey, host: string, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(key, signal, async () => {
      const found = await this.#idle(key, signal);
      if (found.location !== host) await moveOnce(this.#engine, key, found, host, signal);
      return this.observe(key, signal);
    });
  }

  destroy(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(key, signal, async () => {
      const seen = await this.observe(key, signal);
      if (seen.phase === 'absent' || seen.phase === 'unknown') return seen;
      const instances = await this.#engine.all(key, signal);
      const errors: unknown[] = [];
      // A stuck predecessor must not keep the machine itself.
      for (const found of instances.toSorted((a, b) => Number(isParked(a)) - Number(isParked(b))))
        await this.#destroyOne(found, signal).catch((error) => errors.push(error));
      signal.throwIfAborted();
      if (errors.length) throw errors[0];
      return this.observe(key, signal);
    });
  }

  async #destroyOne(found: Instance, signal: AbortSignal): Promise<void> {
    if (!isReady(found)) await this.#engine.idle(found, signal);
    await this.#engine.remove(found, signal);
  }

  /** @throws DriverError failed if the machine does not exist, or was not finished */
  async #existing(key: MachineKey, signal: AbortSignal): Promise<Instance> {
    let found = await this.#engine.ours(key, signal);
    if (found && !isReady(found) && (await this.#engine.all(key, signal)).some(isParked))
      found = await this.#finished(key, signal);
    if (!found || !isReady(found)) throw new DriverError('failed', 'There is no machine of that order.');
    return found;
  }

  /** Waits for the move of a worker that lost its lease. It takes long with a large disk, and would lose a change. */
  async #idle(key: MachineKey, signal: AbortSignal): Promise<Instance> {
    await this.#engine.idle(await this.#existing(key, signal), signal, 'unreachable');
    return this.#existing(key, signal);
  }

  /**
   * The instance if it was finished. The driver removes an unfinished one, since its content is unknown. If it was to
   * replace another by a rebuild, that one comes back.
   * @param change the rebuild, if it failed just now
   */
  async #finished(key: MachineKey, signal: AbortSignal, change?: string): Promise<Instance | undefined> {
    const found = await this.#engine.ours(key, signal);
    if (!found || isReady(found)) return found;
    await this.#engine.idle(found, signal);
    const instances = await this.#engine.all(key, signal);
    const finished = instances.find(isReady);
    if (finished) return finished;
    const old = predecessorIn(instances, change);
    for (const unfinished of instances.filter((one) => !isParked(one)))
      await (old ? this.#removeIfPossible(unfinished, signal) : this.#engine.remove(unfinished, signal));
    if (!old) return undefined;
    await restore(this.#engine, old, signal);
    return this.#engine.ours(key, signal);
  }

  async #make(spec: MachineSpec, marks: Record<string, string>, signal: AbortSignal): Promise<void> {
    const name = nameOf(spec);
    if (await this.#engine.isTaken(name, signal))
      throw (await this.#engine.find(spec, signal))
        ? new DriverError('failed', `Another worker makes the instance ${name} at this moment.`)
        : new DriverError('conflict', `The instance ${name} exists without our mark.`);
    await this.#engine.make(spec, name, marks, signal);
  }

  /** Observes a started machine for a moment, until it gives proof. */
  async #proven(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    for (const end = Date.now() + PROOF_MS; ; await pause(PROOF_POLL_MS, signal)) {
      const seen = await this.observe(key, signal);
      if (seen.proven || seen.phase !== 'present' || seen.power !== 'on' || Date.now() > end) return seen;
    }
  }
}
