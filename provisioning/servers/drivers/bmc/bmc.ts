/**
 * Dedicated servers. The driver turns bare-metal hosts on and off through their controllers (BMC). They install their system
 * from the network, and phone home. The driver writes each command to a store before it sends it, and other processes see
 * the store. So each process that observes an interrupted deployment continues it.
 */
import {
  DriverError,
  digestOf,
  type HardwareDriver,
  type HostReport,
  type MachineKey,
  type MachineSpec,
  type Observation,
  type Power,
  type PowerChange,
  turns,
} from '../driver.ts';
import type { Controller } from './controller.ts';
import type { DeploymentStore, HostDeployment } from './deployment.ts';
import { eachOf } from './each.ts';
import type { BareMetalHost, Inventory } from './host.ts';
import { carryCycle, controllerOf, fenced, type Patience, turnOff } from './power.ts';
import { disableNewUsers, usersOf } from './users.ts';

export interface BmcOptions extends Partial<Patience> {
  inventory: Inventory;
  store: DeploymentStore;
  /** Default: the controller of the host's protocol. */
  controller?: (host: BareMetalHost) => Controller;
}

/** The states in which a host installs or wipes, so it must be on. An installed system may never report, so its power counts. */
const AT_WORK: ReadonlySet<HostDeployment['state']> = new Set(['WAITING', 'INSTALLING', 'WIPING']);
const LEAVING: ReadonlySet<HostDeployment['state']> = new Set(['WIPING', 'WIPED']);
const SILENCE_SECONDS_MAX = 6 * 3600;
/** Controllers that a look at all hosts asks at once. */
const LOOKS_MAX = 16;
/** Bare-metal hosts that the driver asks for the health of a region. */
const ASKED = 3;

export class BmcDriver implements HardwareDriver {
  readonly name = 'bmc';
  readonly simulated = false;
  readonly needsHosts = true;
  readonly #inventory: Inventory;
  readonly #store: DeploymentStore;
  readonly #controller: (host: BareMetalHost) => Controller;
  readonly #patience: Patience;
  readonly #exclusive = turns();
  /** The addresses of controllers that have virtual media. */
  readonly #withMedium = new Set<string>();

  constructor({ inventory, store, controller = controllerOf, ...patience }: BmcOptions) {
    this.#inventory = inventory;
    this.#store = store;
    this.#controller = controller;
    this.#patience = { graceSeconds: 30, powerSeconds: 60, pollSeconds: 1, silenceSeconds: 1200, ...patience };
  }

  async capacity(signal: AbortSignal): Promise<HostReport[]> {
    return eachOf(await this.#inventory(), LOOKS_MAX, async (host) => {
      const trouble = await this.#troubleOf(host, signal);
      const { name, size } = host;
      return trouble === undefined ? { name, state: 'online', size } : { name, state: 'offline', trouble, size };
    });
  }

  async list(signal: AbortSignal): Promise<Observation[]> {
    const deployments = (await this.#store.list()).filter(({ state }) => state !== 'RETIRED');
    return eachOf(deployments, LOOKS_MAX, async (one) => {
      const power = await this.#powerOf(one, signal).catch(() => undefined);
      return power ? observation(one, power) : { ...observation(one, 'off'), power, phase: 'unknown' as const };
    });
  }

  create(spec: MachineSpec, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(spec, signal, async () => {
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
    return this.#exclusive(machine, signal, async () => {
      const found = await this.#store.find(machine);
      return found && found.state !== 'RETIRED' ? this.#carry(found, signal) : absent(machine);
    });
  }

  power(machine: MachineKey, want: PowerChange, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(machine, signal, async () => {
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
    return this.#exclusive(spec, signal, async () => {
      const found = await this.#existing(spec);
      await this.#requireReady(found.box);
      if (found.change !== change) await this.#store.renew(found, spec, digestOf(spec), change);
      return this.#carry(await this.#existing(spec), signal);
    });
  }

  async resize(spec: MachineSpec): Promise<Observation> {
    await this.#existing(spec);
    throw new DriverError('rejected', 'A dedicated machine has a fixed size.');
  }

  /** Wipes an installed system first. A host that never got an installer has nothing of this order on it. */
  destroy(machine: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#exclusive(machine, signal, async () => {
      const found = await this.#store.find(machine);
      if (!found || found.state === 'RETIRED') return absent(machine);
      const untouched = ({ state, run }: HostDeployment) => state === 'WAITING' && run === 1;
      if (found.state !== 'WIPED' && !untouched(found)) return this.#wipe(found, signal);
      const controller = await this.#controllerOf(found);
      await turnOff(controller, this.#patience, false, signal);
      // Before it went off, it may have begun to install.
      const now = await this.#store.find(machine);
      if (now && now.state !== 'WIPED' && !untouched(now)) return this.#wipe(now, signal);
      await disableNewUsers(controller, found.bmcUsers, signal);
      if (now) await this.#store.release(now);
      return absent(machine);
    });
  }

  /** True if one of the first bare-metal hosts of the region answers, or it has none. */
  async reachable(region: string, signal: AbortSignal): Promise<boolean> {
    const hosts = (await this.#inventory()).filter((host) => host.region === region).slice(0, ASKED);
    if (!hosts.length) return true;
    return (await Promise.all(hosts.map((host) => this.#troubleOf(host, signal)))).includes(undefined);
  }

  async #wipe(found: HostDeployment, signal: AbortSignal): Promise<Observation> {
    await this.#requireReady(found.box);
    if (found.state !== 'WIPING') await this.#store.wipe(found);
    return this.#carry(await this.#existing(keyOf(found)), signal);
  }

  /** Reserves the given host, or the first one that is free and reachable. */
  async #place(spec: MachineSpec, specDigest: string, signal: AbortSignal): Promise<HostDeployment> {
    const hosts = (await this.#inventory(spec.host ?? undefined)).filter(({ name, region, serviceCode }) =>
      spec.host ? name === spec.host : region === spec.region && serviceCode === spec.serviceCode,
    );
    const taken = new Set((await this.#store.list()).map((deployment) => deployment.box));
    const free = hosts.filter(({ name }) => !taken.has(name));
    if (!free.length) throw new DriverError('no_capacity', 'No bare-metal host of that kind is free.');
    let reason: unknown;
    for (const host of free) {
      let users: string[] | null;
      try {
        if (host.unready) throw new DriverError('failed', host.unready);
        await this.#requireController(host, signal);
        const controller = this.#controller(host);
        await disableNewUsers(controller, host.bmcUsers ?? null, signal);
        users = await usersOf(controller, signal);
      } catch (error) {
        signal.throwIfAborted();
        reason = error;
        continue;
      }
      const begun = await this.#store.begin(spec, specDigest, host, users);
      if (begun) return begun;
    }
    throw reason ?? new DriverError('failed', 'Other orders have just taken the last free hosts.');
  }

  /** Carries out the rest of the plan, and observes the result. It turns on a host that is off during its work. */
  async #carry(found: HostDeployment, signal: AbortSignal, gently = false): Promise<Observation> {
    const controller = await this.#controllerOf(found);
    let now = found;
    if (now.state === 'WIPING' && !now.cycle && now.silentSeconds > this.#silenceOf(now)) {
      await this.#store.restartWiper(now);
      now = { ...now, device: 'PXE', cycle: 'OFF' };
    }
    if (!now.cycle && AT_WORK.has(now.state) && (await controller.power(signal)) === 'off') {
      await this.#store.plan(now, { device: now.device, cycle: 'ON' });
      now = { ...now, cycle: 'ON' };
    }
    if (now.cycle) {
      await carryCycle(controller, this.#store, now, { ...this.#patience, gently }, signal);
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
    const host = await this.#hostOf(found.box);
    return fenced(this.#controller(host), this.#store, found, host.boot);
  }

  async #hostOf(name: string): Promise<BareMetalHost> {
    const host = (await this.#inventory(name)).find((one) => one.name === name);
    if (!host) throw new DriverError('unreachable', `The host ${name} does not exist any more.`);
    return host;
  }

  async #requireReady(name: string): Promise<void> {
    const { unready } = await this.#hostOf(name);
    if (unready) throw new DriverError('failed', unready);
  }

  /** @throws DriverError if its controller does not answer, or lacks the virtual media that the host boots from */
  async #requireController(host: BareMetalHost, signal: AbortSignal): Promise<void> {
    const controller = this.#controller(host);
    await controller.power(signal);
    const { address } = host.bmc;
    if (host.boot === 'NETWORK' || this.#withMedium.has(address)) return;
    if (await controller.hasMedium(signal)) this.#withMedium.add(address);
    else
      throw new DriverError(
        'failed',
        `The controller of ${host.name} has no virtual media. Isolate its boot network, and set bootNetworkIsolated.`,
      );
  }

  #silenceOf({ restarts }: HostDeployment): number {
    return Math.min(SILENCE_SECONDS_MAX, this.#patience.silenceSeconds * 2 ** restarts);
  }

  async #powerOf(found: HostDeployment, signal: AbortSignal): Promise<Power> {
    return (await this.#controllerOf(found)).power(signal);
  }

  /** Why the driver cannot use the controller of a host; undefined if it can. */
  #troubleOf(host: BareMetalHost, signal: AbortSignal): Promise<string | undefined> {
    return this.#requireController(host, signal).then(
      () => undefined,
      (error: unknown) =>
        error instanceof DriverError ? error.message : `The controller of ${host.name} did not answer in time.`,
    );
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
  busy: AT_WORK.has(found.state) || found.cycle !== null,
  proven: found.state === 'BOOTED' && power === 'on' && !found.cycle,
  host: found.box,
  detail: found.state,
});
