/**
 * Machines as system containers of LXD (5 or newer) or Incus (6 or newer), on one server or a cluster. The driver trusts the
 * state that the engine reports, but no error message. After each error it observes the instance again.
 */
import {
  DriverError,
  type HardwareDriver,
  type HostReport,
  type MachineKey,
  type MachineSpec,
  type Observation,
  type PowerChange,
  turns,
} from '../driver.ts';
import { LxcClient } from './client.ts';
import type { Endpoint } from './endpoint.ts';
import { type EngineOptions, LxcEngine, pause } from './engine.ts';
import { type Instance, isReady, keyOf, MARK, nameOf, observationOf, specDigestOf } from './instance.ts';
import { limitsOf, ROOT, rootOf } from './limits.ts';
import { UnsafeEngine } from './project.ts';
import { type Probe, probeByConnecting } from './ssh-proof.ts';

/** Milliseconds that the driver waits for the proof of a started machine, so that fast ones need no second observation. */
const PROOF_MS = 2000;
const PROOF_POLL_MS = 25;

export interface LxcOptions extends EngineOptions {
  /** The endpoints of one server, or of several members of a cluster. */
  endpoints: Endpoint[];
  project: string;
  /** Default: connects to port 22. */
  probe?: Probe;
}

export class LxcDriver implements HardwareDriver {
  readonly name = 'lxc';
  readonly simulated = false;
  readonly #engine: LxcEngine;
  readonly #pool: string;
  readonly #probe: Probe;
  readonly #exclusive = turns();

  constructor({ endpoints, project, probe = probeByConnecting, ...engine }: LxcOptions) {
    this.#engine = new LxcEngine(new LxcClient({ endpoints, project }), engine);
    this.#pool = engine.pool;
    this.#probe = probe;
  }

  capacity(signal: AbortSignal): Promise<HostReport[]> {
    return this.#engine.hosts(signal);
  }

  reachable(_region: string, signal: AbortSignal): Promise<boolean> {
    return this.#engine.reachable(signal);
  }

  async check(signal: AbortSignal): Promise<readonly string[]> {
    const { warnings } = await this.#engine.facts(signal).catch((error) => {
      throw error instanceof UnsafeEngine ? new DriverError('rejected', error.message) : error;
    });
    return warnings;
  }

  /** Lists machines without looking for their proof. */
  async list(signal: AbortSignal): Promise<Observation[]> {
    const { serverName } = await this.#engine.facts(signal);
    return (await this.#engine.instances(signal)).flatMap((instance) => {
      const key = keyOf(instance);
      return key ? [observationOf(instance, key, serverName)] : [];
    });
  }

  async observe(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    const { serverName } = await this.#engine.facts(signal);
    const found = await this.#engine.find(key, signal);
    const owner = found && keyOf(found);
    // An instance with that name but without our mark is not the machine.
    if (!found || owner?.order !== key.order || owner.generation !== key.generation)
      return { order: key.order, generation: key.generation, phase: 'absent', proven: false };
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
      const { name, status, config } = await this.#existing(key, signal);
      const off = status === 'Stopped';
      if (want === 'off') {
        if (!off) await this.#settle(key, 'off', () => this.#engine.stop(name, true, signal), signal);
        return this.observe(key, signal);
      }
      if (want === 'on') {
        if (!off) return this.observe(key, signal);
      } else if (!(await this.#stopOnce(name, config ?? {}, change, want === 'restart', signal)))
        return this.observe(key, signal);
      await this.#settle(key, 'on', () => this.#engine.start(name, signal), signal);
      return this.#proven(key, signal);
    });
  }

  /**
   * The first half of a restart. It stores the process of the old system with the instance. In a repeated call, another
   * process shows that the restart is done.
   * @returns whether the caller must start it
   */
  async #stopOnce(
    name: string,
    config: Record<string, string>,
    change: string,
    graceful: boolean,
    signal: AbortSignal,
  ): Promise<boolean> {
    const boot = await this.#engine.bootOf(name, signal);
    const begun = config[MARK.change] === change;
    if (begun && boot > 0 && String(boot) !== config[MARK.before]) return false;
    if (!begun) await this.#engine.mark(name, { [MARK.change]: change, [MARK.before]: String(boot) }, signal);
    if (boot > 0) await this.#engine.stop(name, graceful, signal);
    return true;
  }

  /** LXD before 5.20 cannot rebuild. The driver then removes the machine, and makes it again with the same name. */
  rebuild(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(spec, signal, async () => {
      const { extensions } = await this.#engine.facts(signal);
      const found = await this.#finished(spec, signal);
      const marks = { [MARK.change]: change };
      if (found?.config?.[MARK.change] === change) return this.#proven(spec, signal);
      await this.#engine.requireImage(spec, signal);
      if (found && extensions.has('instances_rebuild')) {
        if (found.status !== 'Stopped') await this.#engine.stop(found.name, false, signal);
        await this.#engine.replace(spec, marks, signal);
      } else {
        if (found) await this.#engine.remove(found, signal);
        await this.#make(spec, marks, signal);
      }
      return this.#proven(spec, signal);
    });
  }

  resize(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(spec, signal, async () => {
      const { name, status, config } = await this.#existing(spec, signal);
      if (config?.[MARK.change] !== change) {
        if (status !== 'Stopped') throw new DriverError('rejected', `${name} is on.`);
        const marks = { ...limitsOf(spec), [MARK.spec]: specDigestOf(spec), [MARK.change]: change };
        await this.#engine.mark(name, marks, signal, { [ROOT]: rootOf(spec.size, this.#pool) });
      }
      return this.observe(spec, signal);
    });
  }

  destroy(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(key, signal, async () => {
      const seen = await this.observe(key, signal);
      if (seen.phase === 'absent' || seen.phase === 'unknown') return seen;
      const found = await this.#engine.ours(key, signal);
      if (found) {
        if (!isReady(found)) await this.#engine.idle(found, signal);
        await this.#engine.remove(found, signal);
      }
      return this.observe(key, signal);
    });
  }

  /** @throws DriverError failed if the machine does not exist, or was not finished */
  async #existing(key: MachineKey, signal: AbortSignal): Promise<Instance> {
    const found = await this.#engine.ours(key, signal);
    if (!found || !isReady(found)) throw new DriverError('failed', 'There is no machine of that order.');
    return found;
  }

  /** The instance if it was finished. The driver removes an unfinished one, since its content is unknown. */
  async #finished(key: MachineKey, signal: AbortSignal): Promise<Instance | undefined> {
    let found = await this.#engine.ours(key, signal);
    if (!found || isReady(found)) return found;
    await this.#engine.idle(found, signal);
    found = await this.#engine.ours(key, signal);
    if (!found || isReady(found)) return found;
    await this.#engine.remove(found, signal);
    return undefined;
  }

  async #make(spec: MachineSpec, marks: Record<string, string>, signal: AbortSignal): Promise<void> {
    if (await this.#engine.find(spec, signal))
      throw new DriverError('conflict', `The instance ${nameOf(spec)} exists without our mark.`);
    await this.#engine.make(spec, marks, signal);
  }

  /** Acts until the power is as wanted. An engine may refuse an action that it has already done, so the state decides. */
  async #settle(key: MachineKey, power: 'on' | 'off', act: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
    try {
      await act();
    } catch (error) {
      signal.throwIfAborted();
      const found = await this.#engine.ours(key, signal);
      if (!found || (found.status === 'Stopped' ? 'off' : 'on') !== power) throw error;
    }
  }

  /** Observes a started machine for a moment, until it gives proof. */
  async #proven(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    for (const end = Date.now() + PROOF_MS; ; await pause(PROOF_POLL_MS, signal)) {
      const seen = await this.observe(key, signal);
      if (seen.proven || seen.phase !== 'present' || seen.power !== 'on' || Date.now() > end) return seen;
    }
  }
}
