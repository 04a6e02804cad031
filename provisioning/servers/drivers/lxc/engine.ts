/** The operations of an engine on its servers, cluster members and instances, in its own terms. */
import {
  DriverError,
  type DriverErrorCode,
  type HostReport,
  type MachineKey,
  type MachineSpec,
  type Power,
} from '../driver.ts';
import { EngineError, type LxcClient, pause } from './client.ts';
import { EngineFacts } from './facts.ts';
import { hostsOf, spaceOf } from './hosts.ts';
import { LxcImages } from './images.ts';
import {
  aliasOf,
  answering,
  type Instance,
  instanceOf,
  isOf,
  MARK,
  namesOf,
  type Place,
  powerOf,
  presentOf,
} from './instance.ts';
import { HOST_COUNTERS, ROOT, rootOf, TRAITS } from './limits.ts';
import { InstanceLists } from './list.ts';
import { cannotPolice, EGRESS, isLoose, NIC, ratesOf, tightened, Unpoliced } from './network.ts';
import { isBusy, removeInstance } from './remove.ts';

/** Seconds that a system has to shut down before the engine cuts its power. */
const SHUTDOWN_SECONDS = 20;
/** Milliseconds that the driver waits for another operation on an instance. */
const OTHERS_MS_MAX = 60_000;

export interface EngineOptions {
  pool: string;
  network: string;
  nameservers: readonly string[];
  /** Whether machines may send mail to port 25. Default: no. */
  openMail?: boolean;
}

export class LxcEngine {
  readonly #client: LxcClient;
  readonly #options: EngineOptions;
  readonly lists: InstanceLists;
  readonly facts: EngineFacts;
  readonly images: LxcImages;
  readonly #unpoliced = new Unpoliced();

  constructor(client: LxcClient, options: EngineOptions) {
    this.#client = client;
    this.#options = options;
    this.lists = new InstanceLists(client);
    this.facts = new EngineFacts(client, { openMail: false, ...options });
    this.images = new LxcImages(client, this.facts);
  }

  /** Whether the engine knows us, and is safe. @throws DriverError unreachable */
  async reachable(signal: AbortSignal): Promise<boolean> {
    await this.facts.trusted(signal);
    await this.facts.read(signal);
    return true;
  }

  async hosts(signal: AbortSignal): Promise<HostReport[]> {
    return hostsOf(this.#client, await this.facts.read(signal), this.#options.pool, signal);
  }

  async #place({ host }: MachineSpec, signal: AbortSignal): Promise<Place> {
    const { network, clustered } = await this.facts.read(signal);
    const polices = this.#unpoliced.polices(clustered ? host : undefined);
    return { ...this.#options, network, polices };
  }

  /** The machine's instance; undefined if none has our mark. */
  async find(key: MachineKey, signal: AbortSignal): Promise<Instance | undefined> {
    return presentOf(await this.#allOf(key, signal));
  }

  /** Like `find`. @throws DriverError unreachable if its member does not answer */
  async ours(key: MachineKey, signal: AbortSignal): Promise<Instance | undefined> {
    const found = await this.find(key, signal);
    return found && answering(found);
  }

  /** All instances of the machine, with those of a rebuild. @throws DriverError unreachable */
  async all(key: MachineKey, signal: AbortSignal): Promise<Instance[]> {
    return (await this.#allOf(key, signal)).map(answering);
  }

  /** Those of its two names. Without any, those with its mark: the operator may have renamed one. */
  async #allOf(key: MachineKey, signal: AbortSignal): Promise<Instance[]> {
    const { clustered } = await this.facts.read(signal);
    const each = () => Promise.all(namesOf(key).map((name) => this.#named(name, key, signal)));
    const found = clustered ? await this.#listed(key, signal) : (await each()).flatMap((one) => one ?? []);
    return found.length ? found : this.marked(key, signal);
  }

  /** All instances with the mark of the machine, under any name, with the copies of moves. */
  async marked(key: MachineKey, signal: AbortSignal): Promise<Instance[]> {
    const found = await this.#fitting(`config.${MARK.order} eq ${key.order}`, signal);
    return found.filter((one) => isOf(one, key));
  }

  /** Each member can list instances, but only their own member can show one. */
  async #listed(key: MachineKey, signal: AbortSignal): Promise<Instance[]> {
    const found = await this.#fitting(`name eq ${namesOf(key).join(' or name eq ')}`, signal);
    return found.filter((one) => isOf(one, key));
  }

  /** The instances that fit a filter of the engine. A list of all would have the user data of all customers. */
  #fitting(filter: string, signal: AbortSignal): Promise<Instance[]> {
    return this.#client.get(`/1.0/instances?recursion=1&filter=${encodeURIComponent(filter)}`, signal);
  }

  /** Whether an instance has that name, also one without our mark. */
  async isTaken(name: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#fitting(`name eq ${name}`, signal)).length > 0;
  }

  async #named(name: string, key: MachineKey, signal: AbortSignal): Promise<Instance | undefined> {
    const found = await this.#client.get<Instance>(`/1.0/instances/${name}`, signal).catch((error) => {
      if (error instanceof EngineError && error.status === 404) return undefined;
      throw error;
    });
    return found && isOf(found, key) ? found : undefined;
  }

  /** Whether the pool has room for the disk of a machine beside that of another. */
  async hasRoomFor({ size }: MachineSpec, { location }: Instance, signal: AbortSignal): Promise<boolean> {
    const { clustered } = await this.facts.read(signal);
    const { total, used } = await spaceOf(this.#client, this.#options.pool, clustered ? location : undefined, signal);
    return total - used >= size.diskGb * 2 ** 30;
  }

  /** Waits for operations on the instance, for example of a worker that has lost its lease. */
  async idle({ name }: Pick<Instance, 'name'>, signal: AbortSignal, code: DriverErrorCode = 'failed'): Promise<void> {
    for (const end = Date.now() + OTHERS_MS_MAX; Date.now() < end; await pause(200, signal)) {
      const { running = [] } = await this.#client.get<{
        running?: { resources?: { instances?: string[] }; class: string }[];
      }>('/1.0/operations?recursion=1', signal);
      // Others are open shells and consoles of the engine's operators.
      const busy = running.some(
        ({ class: kind, resources }) =>
          kind === 'task' && resources?.instances?.some((path) => path.split('?')[0]!.endsWith(`/${name}`)),
      );
      if (!busy) return;
    }
    throw new DriverError(code, `${name} is busy.`);
  }

  /** Moves an instance that is off to another member of the cluster. */
  async move(name: string, host: string, signal: AbortSignal): Promise<void> {
    const path = `/1.0/instances/${name}?target=${encodeURIComponent(host)}`;
    await this.#client.call('POST', path, { name, migration: true }, signal);
  }

  /**
   * Makes an instance, starts it, and then marks it ready.
   * @param name one of the two names of the machine
   * @param marks additional configuration
   * @throws DriverError rejected if the engine cannot make such an instance; no_capacity if its member is offline
   */
  async make(spec: MachineSpec, name: string, marks: Record<string, string>, signal: AbortSignal): Promise<void> {
    const { clustered } = await this.facts.read(signal);
    const target = clustered && spec.host ? `?target=${encodeURIComponent(spec.host)}` : '';
    const made = instanceOf(spec, await this.#place(spec, signal));
    const body = { ...made, name, config: { ...made.config, ...marks } };
    await this.#client.call('POST', `/1.0/instances${target}`, body, signal).catch(async (error) => {
      if (target && error instanceof DriverError && error.code === 'unreachable')
        throw await this.#whyNotOn(spec, error, signal);
      if (!(error instanceof EngineError) || error.code !== 'failed') throw error;
      const refused = [400, 404].includes(error.status) || !(await this.#hasImage(aliasOf(spec), signal));
      throw refused ? new DriverError('rejected', error.message) : error;
    });
    await this.start(name, signal);
    await this.mark(name, { [MARK.ready]: '1' }, signal);
  }

  /**
   * The error for a member that does not answer. It has no capacity if it is offline and the other members know of no
   * instance. If it makes the instance later, the instance never starts, and is removed with its order.
   */
  async #whyNotOn(spec: MachineSpec, error: DriverError, signal: AbortSignal): Promise<DriverError> {
    const member = (await this.hosts(signal)).find(({ name }) => name === spec.host);
    if (member?.state !== 'offline' || (await this.find(spec, signal))) return error;
    return new DriverError('no_capacity', `${spec.host} does not answer. ${error.message}`);
  }

  /** Checks the image before a machine is removed for it. @throws DriverError rejected */
  async requireImage(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const alias = aliasOf(spec);
    if (!(await this.#hasImage(alias, signal))) throw new DriverError('rejected', `The image ${alias} does not exist.`);
  }

  async #hasImage(alias: string, signal: AbortSignal): Promise<boolean> {
    const path = `/1.0/images/aliases/${encodeURIComponent(alias)}`;
    return this.#client.get(path, signal).then(
      () => true,
      (error) => !(error instanceof EngineError && error.status === 404),
    );
  }

  async start(name: string, signal: AbortSignal): Promise<void> {
    const start = () => this.#turn(name, 'on', { action: 'start', timeout: -1 }, signal);
    await start().catch(async (error) => {
      if (!cannotPolice(error)) throw error;
      const { devices, location } = await this.#client.get<Instance>(`/1.0/instances/${name}`, signal);
      this.#unpoliced.note(location);
      const { [EGRESS]: _, ...nic } = devices![NIC]!;
      await this.mark(name, {}, signal, { [NIC]: nic });
      await start();
    });
  }

  /**
   * Turns an instance on or off. An engine may refuse what it has already done, so the state decides. It may also be at an
   * earlier call, which came late.
   */
  async #turn(name: string, power: Power, body: object, signal: AbortSignal): Promise<void> {
    const path = `/1.0/instances/${name}`;
    const act = () => this.#client.call('PUT', `${path}/state`, body, signal);
    const again = async (error: Error) => {
      signal.throwIfAborted();
      if (!isBusy(error)) throw error;
      await this.idle({ name }, signal);
      return act();
    };
    await act()
      .catch(again)
      .catch(async (error) => {
        signal.throwIfAborted();
        if (powerOf(answering(await this.#client.get<Instance>(path, signal))) !== power) throw error;
      });
  }

  /** Gives a machine that is off what older versions did not. A machine that is on would lose its network for a moment. */
  async tighten(name: string, signal: AbortSignal): Promise<void> {
    const { status, type, config, devices } = await this.#client.get<Instance>(`/1.0/instances/${name}`, signal);
    if (status !== 'Stopped') return;
    const nic = devices?.[NIC];
    if (nic && isLoose(nic)) await this.mark(name, {}, signal, { [NIC]: tightened(nic) });
    const asks = Object.entries(HOST_COUNTERS).some(([key, value]) => config?.[key] !== value);
    if (type === 'virtual-machine' && asks) await this.mark(name, HOST_COUNTERS, signal);
  }

  /** The disk and the network card of a machine after a resize. The card keeps its addresses. */
  resized({ size, traits = TRAITS }: MachineSpec, { devices, location }: Instance): NonNullable<Instance['devices']> {
    const nic = devices?.[NIC];
    const rates = ratesOf({ portMbps: traits.portMbps, polices: this.#unpoliced.polices(location) });
    return { [ROOT]: rootOf(size, this.#options.pool), ...(nic && { [NIC]: { ...tightened(nic), ...rates } }) };
  }

  /** Asks the system to shut down, and cuts its power if it does not. */
  async stop(name: string, graceful: boolean, signal: AbortSignal): Promise<void> {
    const stop = (force: boolean) =>
      this.#turn(name, 'off', { action: 'stop', timeout: force ? -1 : SHUTDOWN_SECONDS, force }, signal);
    if (graceful) {
      const ended = await stop(false).then(
        () => true,
        () => false,
      );
      if (ended) return;
      signal.throwIfAborted();
    }
    await stop(true);
  }

  /** The process id of its init; 0 if it is off. */
  async bootOf(name: string, signal: AbortSignal): Promise<number> {
    return (await this.#client.get<{ pid: number }>(`/1.0/instances/${name}/state`, signal)).pid;
  }

  /** Changes the given keys of the configuration, and the given devices. */
  async mark(
    name: string,
    config: Record<string, string>,
    signal: AbortSignal,
    devices?: Instance['devices'],
  ): Promise<void> {
    const path = `/1.0/instances/${name}`;
    await this.#client.call('PATCH', path, { config, ...(devices && { devices }) }, signal).catch(async (error) => {
      if (!(error instanceof EngineError) || devices) throw error;
      // LXD changes a running virtual machine, and then fails to tell the agent in it, which many images lack.
      const { config: now = {} } = await this.#client.get<Instance>(path, signal);
      if (Object.entries(config).some(([key, value]) => (now[key] ?? '') !== value)) throw error;
    });
  }

  /** Removes an instance. @throws DriverError stuck */
  remove(instance: Instance, signal: AbortSignal): Promise<void> {
    return removeInstance(this.#client, instance, () => this.stop(instance.name, false, signal), signal);
  }
}
