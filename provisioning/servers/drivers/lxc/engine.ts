/** The operations of an engine on its servers, cluster members and instances, in its own terms. */
import { DriverError, type HostReport, type MachineKey, type MachineSpec } from '../driver.ts';
import { EngineError, type LxcClient } from './client.ts';
import { EngineFacts, type Facts } from './facts.ts';
import { aliasOf, type Instance, instanceOf, keyOf, MARK, nameOf, type Place } from './instance.ts';
import { cannotPolice, EGRESS, NIC } from './network.ts';

/** Seconds that a system has to shut down before the engine cuts its power. */
const SHUTDOWN_SECONDS = 20;
/** Milliseconds that the driver waits for another operation on an instance. */
const OTHERS_MS_MAX = 60_000;

interface Member {
  server_name: string;
  status: string;
}

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
  readonly #facts: EngineFacts;
  /** Until a start fails for it, the kernel is taken to limit what machines send. */
  #polices = true;

  constructor(client: LxcClient, options: EngineOptions) {
    this.#client = client;
    this.#options = options;
    this.#facts = new EngineFacts(client, { openMail: false, ...options });
  }

  /** Facts about the engine. @throws UnsafeEngine, DriverError unreachable */
  facts(signal: AbortSignal): Promise<Facts> {
    return this.#facts.read(signal);
  }

  /** Whether the engine knows us, and is safe. @throws DriverError unreachable */
  async reachable(signal: AbortSignal): Promise<boolean> {
    await this.#facts.trusted(signal);
    await this.facts(signal);
    return true;
  }

  async hosts(signal: AbortSignal): Promise<HostReport[]> {
    const { clustered, serverName } = await this.facts(signal);
    if (!clustered) return [{ name: serverName, state: 'online', size: await this.#size('', signal) }];
    const members = await this.#client.get<Member[]>('/1.0/cluster/members?recursion=1', signal);
    return Promise.all(
      members.map(async ({ server_name: name, status }) => {
        const online = status === 'Online';
        const size = online ? await this.#size(`?target=${encodeURIComponent(name)}`, signal).catch(() => null) : null;
        signal.throwIfAborted();
        const state = size ? 'online' : status === 'Evacuated' ? 'drained' : 'offline';
        return { name, state, size: size ?? { vcpus: 0, memoryMb: 0, diskGb: 0 } } as const;
      }),
    );
  }

  async #size(target: string, signal: AbortSignal) {
    const [{ cpu, memory }, { space }] = await Promise.all([
      this.#client.get<{ cpu: { total: number }; memory: { total: number } }>(`/1.0/resources${target}`, signal),
      this.#client.get<{ space: { total: number } }>(
        `/1.0/storage-pools/${encodeURIComponent(this.#options.pool)}/resources${target}`,
        signal,
      ),
    ]);
    return {
      vcpus: cpu.total,
      memoryMb: Math.floor(memory.total / 2 ** 20),
      diskGb: Math.floor(space.total / 2 ** 30),
    };
  }

  async #place(signal: AbortSignal): Promise<Place> {
    const { network } = await this.facts(signal);
    return { ...this.#options, network, polices: this.#polices };
  }

  instances(signal: AbortSignal): Promise<Instance[]> {
    return this.#client.get('/1.0/instances?recursion=1', signal);
  }

  /** The instance with the machine's name. Each member can list instances, but only their own member can show one. */
  async find(key: MachineKey, signal: AbortSignal): Promise<Instance | undefined> {
    const name = nameOf(key);
    if ((await this.facts(signal)).clustered) {
      const filter = encodeURIComponent(`name eq ${name}`);
      return (await this.#client.get<Instance[]>(`/1.0/instances?recursion=1&filter=${filter}`, signal))[0];
    }
    return this.#client.get<Instance>(`/1.0/instances/${name}`, signal).catch((error) => {
      if (error instanceof EngineError && error.status === 404) return undefined;
      throw error;
    });
  }

  /** The machine's instance, if it has our mark. @throws DriverError unreachable if its member does not answer */
  async ours(key: MachineKey, signal: AbortSignal): Promise<Instance | undefined> {
    const found = await this.find(key, signal);
    if (!found || !isOf(found, key)) return undefined;
    if (found.status === 'Error') throw new DriverError('unreachable', `${found.location} does not answer.`);
    return found;
  }

  /** Waits for operations on the instance, for example of a worker that has lost its lease. */
  async idle({ name }: Instance, signal: AbortSignal): Promise<void> {
    for (const end = Date.now() + OTHERS_MS_MAX; Date.now() < end; await pause(200, signal)) {
      const { running = [] } = await this.#client.get<{
        running?: { resources?: { instances?: string[] }; class: string }[];
      }>('/1.0/operations?recursion=1', signal);
      const busy = running.some(({ resources }) =>
        resources?.instances?.some((path) => path.split('?')[0]!.endsWith(`/${name}`)),
      );
      if (!busy) return;
    }
    throw new DriverError('failed', `${name} is busy.`);
  }

  /**
   * Makes an instance, starts it, and then marks it ready.
   * @param marks additional configuration
   * @throws DriverError rejected if the engine cannot make such an instance; no_capacity if its member is offline
   */
  async make(spec: MachineSpec, marks: Record<string, string>, signal: AbortSignal): Promise<void> {
    const { clustered } = await this.facts(signal);
    const target = clustered && spec.host ? `?target=${encodeURIComponent(spec.host)}` : '';
    const body = instanceOf(spec, await this.#place(signal));
    Object.assign(body.config, marks);
    await this.#client.call('POST', `/1.0/instances${target}`, body, signal).catch(async (error) => {
      if (target && error instanceof DriverError && error.code === 'unreachable')
        throw await this.#whyNotOn(spec, error, signal);
      if (!(error instanceof EngineError) || error.code !== 'failed') throw error;
      const refused = [400, 404].includes(error.status) || !(await this.#hasImage(aliasOf(spec), signal));
      throw refused ? new DriverError('rejected', error.message) : error;
    });
    await this.start(body.name, signal);
    await this.mark(body.name, { [MARK.ready]: '1' }, signal);
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

  /** Replaces the image and the configuration of an instance that is off. */
  async replace(spec: MachineSpec, marks: Record<string, string>, signal: AbortSignal): Promise<void> {
    const { name, config, source } = instanceOf(spec, await this.#place(signal));
    await this.mark(name, { ...config, ...marks, [MARK.ready]: '' }, signal);
    await this.#client.call('POST', `/1.0/instances/${name}/rebuild`, { source }, signal);
    await this.start(name, signal);
    await this.mark(name, { [MARK.ready]: '1' }, signal);
  }

  async start(name: string, signal: AbortSignal): Promise<void> {
    const start = () =>
      this.#client.call('PUT', `/1.0/instances/${name}/state`, { action: 'start', timeout: -1 }, signal);
    await start().catch(async (error) => {
      if (!cannotPolice(error)) throw error;
      this.#polices = false;
      const { devices } = await this.#client.get<Instance>(`/1.0/instances/${name}`, signal);
      const { [EGRESS]: _, ...nic } = devices![NIC]!;
      await this.mark(name, {}, signal, { [NIC]: nic });
      await start();
    });
  }

  /** Asks the system to shut down, and cuts its power if it does not. */
  async stop(name: string, graceful: boolean, signal: AbortSignal): Promise<void> {
    const stop = (force: boolean) =>
      this.#client.call(
        'PUT',
        `/1.0/instances/${name}/state`,
        { action: 'stop', timeout: force ? -1 : SHUTDOWN_SECONDS, force },
        signal,
      );
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
  mark(
    name: string,
    config: Record<string, string>,
    signal: AbortSignal,
    devices?: Instance['devices'],
  ): Promise<unknown> {
    return this.#client.call('PATCH', `/1.0/instances/${name}`, { config, ...(devices && { devices }) }, signal);
  }

  /**
   * Removes an instance. A killed engine can leave one that cannot be removed. The driver then detaches its network, which
   * frees its addresses, and marks it for the operator.
   * @throws DriverError stuck
   */
  async remove({ name, status }: Instance, signal: AbortSignal): Promise<void> {
    const path = `/1.0/instances/${name}`;
    if (status !== 'Stopped') await this.stop(name, false, signal).catch(() => signal.throwIfAborted());
    try {
      await this.#client.call('DELETE', path, undefined, signal);
    } catch (error) {
      if (!(error instanceof EngineError) || error.code === 'unreachable') throw error;
      if (error.status === 404) return;
      const left = await this.#client.get<Instance>(path, signal).catch(() => undefined);
      if (!left) throw error; // It is gone or unknown, and the next call decides.
      const { [NIC]: _, ...devices } = left.devices ?? {};
      const config = { ...left.config, [MARK.stuck]: '1' };
      await this.#client.call('PUT', path, { ...left, devices, config }, signal).catch(() => signal.throwIfAborted());
      throw new DriverError('stuck', error.message);
    }
  }
}

const isOf = (instance: Instance, key: MachineKey): boolean => {
  const found = keyOf(instance);
  return found?.order === key.order && found.generation === key.generation;
};

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve) => setTimeout(resolve, ms));
  signal.throwIfAborted();
}
