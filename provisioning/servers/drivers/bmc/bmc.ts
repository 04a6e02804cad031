/**
 * Dedicated servers: boxes that are turned on and off through their controllers (BMC), install their system from the
 * network, and phone home. What a box is at is written before it is told, in a store that other processes see too; a
 * deployment that stands still is carried on by whoever observes it.
 */
import { createHash } from 'node:crypto';
import {
  DriverError,
  type HardwareDriver,
  type HostReport,
  type MachineKey,
  type MachineSpec,
  type Observation,
  type Power,
  type PowerChange,
} from '../driver.ts';
import type { Controller } from './controller.ts';
import type { DeploymentStore, HostDeployment } from './deployment.ts';
import type { BareMetalHost, Inventory } from './host.ts';
import { carryCycle, controllerOf, fenced, type Patience, type Proof, turnOff } from './power.ts';

export interface BmcOptions extends Partial<Patience> {
  inventory: Inventory;
  store: DeploymentStore;
  /** Default: what the box has. */
  controller?: (box: BareMetalHost) => Controller;
  /**
   * Whether an SSH server answers at an address. Systems phone home once, when they are new: this is the proof of those that
   * were turned on again. Default: that they are on is all that can be known.
   */
  probe?: (address: string, host: string, signal: AbortSignal) => Promise<boolean>;
}

/** The states in which a box is at work for us, and on. */
const AT_WORK: ReadonlySet<HostDeployment['state']> = new Set(['WAITING', 'INSTALLING', 'INSTALLED', 'WIPING']);
const LEAVING: ReadonlySet<HostDeployment['state']> = new Set(['WIPING', 'WIPED']);
/** How many boxes are asked for the health of a region. */
const ASKED = 3;

const digestOf = ({ host: _, ...spec }: MachineSpec) => createHash('sha256').update(JSON.stringify(spec)).digest('hex');

export class BmcDriver implements HardwareDriver {
  readonly name = 'bmc';
  readonly simulated = false;
  readonly needsHosts = true;
  readonly #inventory: Inventory;
  readonly #store: DeploymentStore;
  readonly #controller: (box: BareMetalHost) => Controller;
  readonly #patience: Patience;
  readonly #proof: Proof;
  /** By order and generation: the end of what is being done to it in this process. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor({ inventory, store, controller = controllerOf, probe, ...patience }: BmcOptions) {
    this.#inventory = inventory;
    this.#store = store;
    this.#controller = controller;
    this.#proof = async ({ address, box }, signal) => !probe || !address || probe(address, box, signal);
    this.#patience = { graceSeconds: 30, powerSeconds: 60, pollSeconds: 1, ...patience };
  }

  async capacity(signal: AbortSignal): Promise<HostReport[]> {
    return Promise.all(
      (await this.#inventory()).map(async (box) => {
        const state = (await this.#answers(box, signal)) ? ('online' as const) : ('offline' as const);
        return { name: box.name, state, size: box.size };
      }),
    );
  }

  async list(signal: AbortSignal): Promise<Observation[]> {
    const deployments = (await this.#store.list()).filter(({ state }) => state !== 'RETIRED');
    return Promise.all(
      deployments.map(async (one) => {
        const power = await this.#powerOf(one, signal).catch(() => undefined);
        return power ? observation(one, power) : { ...observation(one, 'off'), power, phase: 'unknown' as const };
      }),
    );
  }

  create(spec: MachineSpec, signal: AbortSignal): Promise<Observation> {
    return this.#alone(spec, signal, async () => {
      const specDigest = digestOf(spec);
      const found = (await this.#store.find(spec)) ?? (await this.#place(spec, specDigest, signal));
      if (found.specDigest !== specDigest)
        throw new DriverError('conflict', 'There is a machine of that order with another specification.');
      if (LEAVING.has(found.state) || found.state === 'RETIRED')
        throw new DriverError('failed', 'The machine of that order is being wiped, or is gone.');
      return this.#carry(found, signal);
    });
  }

  observe(machine: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#alone(machine, signal, async () => {
      const found = await this.#store.find(machine);
      return found && found.state !== 'RETIRED' ? this.#carry(found, signal) : absent(machine);
    });
  }

  power(machine: MachineKey, want: PowerChange, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#alone(machine, signal, async () => {
      const found = await this.#existing(machine);
      const { device } = found;
      if (want === 'off') {
        await this.#store.plan(found, { device, cycle: null, change });
        await turnOff(await this.#controllerOf(found), this.#patience, true, signal);
        return observation({ ...found, cycle: null }, 'off');
      }
      if (found.change !== change)
        await this.#store.plan(found, { device, cycle: want === 'on' ? 'ON' : 'OFF', change });
      return this.#carry(await this.#existing(machine), signal, want === 'restart');
    });
  }

  rebuild(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#alone(spec, signal, async () => {
      const found = await this.#existing(spec);
      if (found.change !== change) await this.#store.renew(found, spec, digestOf(spec), change);
      return this.#carry(await this.#existing(spec), signal);
    });
  }

  async resize(spec: MachineSpec): Promise<Observation> {
    await this.#existing(spec);
    throw new DriverError('rejected', 'A dedicated machine is what it is.');
  }

  /** Whatever was installed is wiped first. A box to which nothing was ever given has nothing on it of this order. */
  destroy(machine: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#alone(machine, signal, async () => {
      const found = await this.#store.find(machine);
      if (!found || found.state === 'RETIRED') return absent(machine);
      const untouched = ({ state, run }: HostDeployment) => state === 'WAITING' && run === 1;
      if (found.state !== 'WIPED' && !untouched(found)) return this.#wipe(found, signal);
      await turnOff(await this.#controllerOf(found), this.#patience, false, signal);
      // While it was still on, it may have begun to install.
      const now = await this.#store.find(machine);
      if (now && now.state !== 'WIPED' && !untouched(now)) return this.#wipe(now, signal);
      if (now) await this.#store.release(now);
      return absent(machine);
    });
  }

  /** True if one of the first boxes of the region answers, or it has none. */
  async reachable(region: string, signal: AbortSignal): Promise<boolean> {
    const boxes = (await this.#inventory()).filter((box) => box.region === region).slice(0, ASKED);
    if (!boxes.length) return true;
    return (await Promise.all(boxes.map((box) => this.#answers(box, signal)))).some(Boolean);
  }

  async #wipe(found: HostDeployment, signal: AbortSignal): Promise<Observation> {
    if (found.state !== 'WIPING') await this.#store.wipe(found);
    return this.#carry(await this.#existing(keyOf(found)), signal);
  }

  /** Takes the box that was picked, or the first that is free and can be reached. */
  async #place(spec: MachineSpec, specDigest: string, signal: AbortSignal): Promise<HostDeployment> {
    const boxes = (await this.#inventory(spec.host ?? undefined)).filter(({ name, region, serviceCode }) =>
      spec.host ? name === spec.host : region === spec.region && serviceCode === spec.serviceCode,
    );
    const taken = new Set((await this.#store.list()).map(({ box }) => box));
    const free = boxes.filter(({ name }) => !taken.has(name));
    if (!free.length) throw new DriverError('no_capacity', 'No box of that kind is free.');
    let unreachable: unknown;
    for (const box of free) {
      try {
        await this.#controller(box).power(signal);
      } catch (error) {
        signal.throwIfAborted();
        unreachable = error;
        continue;
      }
      const begun = await this.#store.begin(spec, specDigest, box);
      if (begun) return begun;
    }
    throw unreachable ?? new DriverError('failed', 'Others have just taken the last free boxes.');
  }

  /** Does what is left to do, and says how it is then. A box that is at work for us but off, for whatever reason, goes on. */
  async #carry(found: HostDeployment, signal: AbortSignal, gently = false): Promise<Observation> {
    const controller = await this.#controllerOf(found);
    let now = found;
    if (!now.cycle && AT_WORK.has(now.state) && (await controller.power(signal)) === 'off') {
      await this.#store.plan(now, { device: now.device, cycle: 'ON' });
      now = { ...now, cycle: 'ON' };
    }
    if (now.cycle) {
      await carryCycle(controller, this.#store, now, { ...this.#patience, gently, proof: this.#proof }, signal);
      now = (await this.#store.find(keyOf(found))) ?? now;
    }
    return observation(now, await controller.power(signal));
  }

  async #existing(machine: MachineKey): Promise<HostDeployment> {
    const found = await this.#store.find(machine);
    if (!found || found.state === 'RETIRED') throw new DriverError('failed', 'There is no machine of that order.');
    return found;
  }

  async #controllerOf(found: HostDeployment): Promise<Controller> {
    const box = (await this.#inventory(found.box)).find((one) => one.name === found.box);
    if (!box) throw new DriverError('unreachable', `There is no box ${found.box} any more.`);
    return fenced(this.#controller(box), this.#store, found);
  }

  async #powerOf(found: HostDeployment, signal: AbortSignal): Promise<Power> {
    return (await this.#controllerOf(found)).power(signal);
  }

  #answers(box: BareMetalHost, signal: AbortSignal): Promise<boolean> {
    return this.#controller(box)
      .power(signal)
      .then(
        () => true,
        () => false,
      );
  }

  /** One call at a time for each machine; those of other processes are kept apart by the task that they belong to. */
  #alone<T>({ order, generation }: MachineKey, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const name = `${order}.${generation}`;
    const begin = () => {
      signal.throwIfAborted(); // before anything is written that others would carry out
      return work();
    };
    const turn = (this.#turns.get(name) ?? Promise.resolve()).then(begin, begin);
    const end: Promise<unknown> = turn
      .catch(() => {})
      .then(() => this.#turns.get(name) === end && this.#turns.delete(name));
    this.#turns.set(name, end);
    return turn;
  }
}

const keyOf = ({ orderNumber, generation }: HostDeployment): MachineKey => ({ order: orderNumber, generation });

const absent = ({ order, generation }: MachineKey): Observation => ({
  order,
  generation,
  phase: 'absent',
  proven: false,
});

const phaseOf = ({ state }: HostDeployment) => {
  if (state === 'RETIRED') return 'absent';
  return LEAVING.has(state) ? 'incomplete' : 'present';
};

const observation = (found: HostDeployment, power: Power): Observation => ({
  ...keyOf(found),
  phase: phaseOf(found),
  power,
  proven: found.state === 'BOOTED' && power === 'on' && !found.cycle,
  host: found.box,
  detail: found.state,
});
