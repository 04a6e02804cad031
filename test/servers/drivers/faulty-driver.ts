/**
 * A driver that wraps another one and breaks single calls, as engines do on a bad day. The test picks calls and faults.
 */
import {
  DriverError,
  type DriverErrorCode,
  type EngineReport,
  type HardwareDriver,
  type HostReport,
  type MachineKey,
  type MachineSpec,
  type Observation,
  type PowerChange,
  type Reading,
} from '../../../provisioning/servers/drivers/driver.ts';

/**
 * - `fail`: does nothing, and fails;
 * - `lose`: carries the call out, and loses the answer;
 * - `hang`: does nothing, and does not answer until it is aborted;
 * - `late`: carries the call out after it was aborted;
 * - `twice`: carries the call out twice at once;
 * - `lie`: does nothing, and answers with a given observation, with no hosts and machines, or with reachable.
 */
export type Fault =
  | { kind: 'fail'; code: DriverErrorCode }
  | { kind: 'lose' | 'hang' | 'late' | 'twice' }
  | { kind: 'lie'; observation: Partial<Observation> };
/** The calls of a driver. A new call in the interface causes a type error here. */
export type Call = Exclude<keyof HardwareDriver, 'name' | 'simulated' | 'needsHosts' | 'imageStore'>;

export class FaultyDriver implements HardwareDriver {
  readonly name = 'faulty';
  readonly simulated = true;
  readonly #driver: HardwareDriver;
  /** Returns the fault of a call; undefined leaves the call as it is. */
  fault: (call: Call, key?: MachineKey) => Fault | undefined = () => undefined;

  constructor(driver: HardwareDriver) {
    this.#driver = driver;
  }

  check(signal: AbortSignal): Promise<readonly string[]> {
    return this.#answer('check', signal, async (its) => (await this.#driver.check?.(its)) ?? [], []);
  }
  about(signal: AbortSignal): Promise<EngineReport> {
    const report: EngineReport = { product: 'LXD', version: '5.0.2', images: [] };
    return this.#answer('about', signal, async (its) => (await this.#driver.about?.(its)) ?? report, report);
  }
  capacity(signal: AbortSignal): Promise<HostReport[]> {
    return this.#answer('capacity', signal, (its) => this.#driver.capacity(its), []);
  }
  list(signal: AbortSignal): Promise<Observation[]> {
    return this.#answer('list', signal, (its) => this.#driver.list(its), []);
  }
  meter(signal: AbortSignal): Promise<Reading[]> {
    return this.#answer('meter', signal, async (its) => (await this.#driver.meter?.(its)) ?? [], []);
  }
  setSpeed(key: MachineKey, portMbps: number, signal: AbortSignal): Promise<void> {
    return this.#answer('setSpeed', signal, async (its) => this.#driver.setSpeed?.(key, portMbps, its), undefined);
  }
  async reachable(region: string, signal: AbortSignal): Promise<boolean> {
    return this.#answer(
      'reachable',
      signal,
      async (its) => (await this.#driver.reachable?.(region, its)) ?? true,
      true,
    );
  }
  create(spec: MachineSpec, signal: AbortSignal): Promise<Observation> {
    return this.#tell('create', spec, signal, (its) => this.#driver.create(spec, its));
  }
  observe(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#tell('observe', key, signal, (its) => this.#driver.observe(key, its));
  }
  power(key: MachineKey, want: PowerChange, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#tell('power', key, signal, (its) => this.#driver.power(key, want, change, its));
  }
  rebuild(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#tell('rebuild', spec, signal, (its) => this.#driver.rebuild(spec, change, its));
  }
  restore(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#tell(
      'restore',
      key,
      signal,
      async (its) => (await this.#driver.restore?.(key, its)) ?? this.#driver.observe(key, its),
    );
  }
  resize(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#tell('resize', spec, signal, (its) => this.#driver.resize(spec, change, its));
  }
  move(key: MachineKey, host: string, signal: AbortSignal): Promise<Observation> {
    return this.#tell(
      'move',
      key,
      signal,
      async (its) => (await this.#driver.move?.(key, host, its)) ?? this.#driver.observe(key, its),
    );
  }
  destroy(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    return this.#tell('destroy', key, signal, (its) => this.#driver.destroy(key, its));
  }

  #tell(
    call: Call,
    { order, generation }: MachineKey,
    signal: AbortSignal,
    act: (signal: AbortSignal) => Promise<Observation>,
  ): Promise<Observation> {
    const key = { order, generation };
    return this.#answer(call, signal, act, { ...key, phase: 'present', proven: false }, key);
  }

  async #answer<T>(
    call: Call,
    signal: AbortSignal,
    act: (signal: AbortSignal) => Promise<T>,
    lie: T,
    key?: MachineKey,
  ): Promise<T> {
    const fault = this.fault(call, key);
    switch (fault?.kind) {
      case undefined:
        return act(signal);
      case 'fail':
        throw new DriverError(fault.code, `The test makes ${call} fail.`);
      case 'lose':
        await act(signal);
        throw new DriverError('unreachable', `The test drops the answer of ${call}.`);
      case 'twice': {
        const answers = await Promise.allSettled([act(signal), act(signal)]);
        const given = answers.find((answer) => answer.status === 'fulfilled');
        if (given) return given.value;
        throw (answers[0] as PromiseRejectedResult).reason;
      }
      case 'lie':
        return key ? { ...lie, ...fault.observation } : lie;
      case 'hang':
        await aborted(signal);
        throw signal.reason;
      case 'late':
        await aborted(signal);
        return act(new AbortController().signal);
    }
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
