/** A driver that does to another what engines do on a bad day. It is told which call goes wrong, and how. */
import {
  DriverError,
  type DriverErrorCode,
  type HardwareDriver,
  type HostReport,
  type MachineKey,
  type MachineSpec,
  type Observation,
  type PowerChange,
} from '../../../provisioning/servers/drivers/driver.ts';

/**
 * - `fail`: it does nothing, and says so;
 * - `lose`: it does it, and the answer is lost;
 * - `hang`: it does nothing, and says nothing until it is aborted;
 * - `late`: it does it after it was aborted;
 * - `twice`: it does it twice at once;
 * - `lie`: it does nothing, and says what it was told to say; of hosts and machines that there are none, and of reach that there is.
 */
export type Fault =
  | { kind: 'fail'; code: DriverErrorCode }
  | { kind: 'lose' | 'hang' | 'late' | 'twice' }
  | { kind: 'lie'; observation: Partial<Observation> };
/** What a driver can be told: a new one of the interface is an error of types here. */
export type Call = Exclude<keyof HardwareDriver, 'name' | 'simulated' | 'needsHosts'>;

export class FaultyDriver implements HardwareDriver {
  readonly name = 'faulty';
  readonly simulated = true;
  readonly #driver: HardwareDriver;
  /** Undefined, or what becomes of this call. */
  fault: (call: Call, key?: MachineKey) => Fault | undefined = () => undefined;

  constructor(driver: HardwareDriver) {
    this.#driver = driver;
  }

  capacity(signal: AbortSignal): Promise<HostReport[]> {
    return this.#answer('capacity', signal, (its) => this.#driver.capacity(its), []);
  }
  list(signal: AbortSignal): Promise<Observation[]> {
    return this.#answer('list', signal, (its) => this.#driver.list(its), []);
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
  resize(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    return this.#tell('resize', spec, signal, (its) => this.#driver.resize(spec, change, its));
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
        throw new DriverError(fault.code, `${call} fails for the test.`);
      case 'lose':
        await act(signal);
        throw new DriverError('unreachable', `The answer of ${call} is lost for the test.`);
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
