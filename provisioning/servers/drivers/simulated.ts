/**
 * Simulated machines. Each is a file in a folder, so machines outlive the service, like real ones. A machine boots for some
 * seconds and then gives proof. The journal lists all changes.
 */
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  DriverError,
  digestOf,
  type HardwareDriver,
  type HostReport,
  type MachineKey,
  type MachineSize,
  type MachineSpec,
  type Observation,
  type Power,
  type PowerChange,
  type Reading,
} from './driver.ts';

interface Machine {
  specDigest: string;
  /** Absent in files of older versions, as the image is. */
  size?: MachineSize;
  image?: string;
  addresses?: string[];
  portMbps?: number;
  /** The last host that it moved to. */
  host?: string;
  /** Milliseconds since the epoch. */
  bootedAt: number;
  power?: Power;
  /** The id of the last change. */
  change?: string;
}

export class SimulatedDriver implements HardwareDriver {
  readonly name: string = 'simulated';
  readonly simulated: boolean = true;
  readonly #folder: string;
  readonly #bootSeconds: number;

  constructor({ folder, bootSeconds }: { folder: string; bootSeconds: number }) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
    this.#bootSeconds = bootSeconds;
  }

  async create(spec: MachineSpec, signal: AbortSignal): Promise<Observation> {
    signal.throwIfAborted();
    const specDigest = digestOf(spec);
    const file = this.#file(spec);
    if (!existsSync(file)) {
      const machine: Machine = { ...madeOf(spec), power: 'on', bootedAt: this.#booted() };
      if (this.#place(file, JSON.stringify(machine))) this.#note('create', spec);
    }
    const machine = this.#read(spec);
    if (machine && machine.specDigest !== specDigest) {
      throw new DriverError('conflict', 'There is a machine of that order with another specification.');
    }
    return this.#observation(spec, machine);
  }

  /** Lists no hosts: the only one has unlimited room. */
  async capacity(): Promise<HostReport[]> {
    return [];
  }

  async list(): Promise<Observation[]> {
    return this.#machines().map(({ machine, ...key }) => this.#observation(key, machine));
  }

  async meter(_signal: AbortSignal): Promise<Reading[]> {
    return this.#machines().flatMap(({ machine, ...key }) =>
      machine.power === 'off' ? [] : { ...key, ...readingOf(machine) },
    );
  }

  async setSpeed(key: MachineKey, portMbps: number): Promise<void> {
    const machine = this.#read(key);
    if (machine) this.#write(key, { ...machine, portMbps });
  }

  async observe(key: MachineKey, _signal: AbortSignal): Promise<Observation> {
    return this.#observation(key, this.#read(key));
  }

  async power(key: MachineKey, want: PowerChange, change: string, signal: AbortSignal): Promise<Observation> {
    signal.throwIfAborted();
    return this.#change(key, change, want, ({ power = 'on', bootedAt }) => {
      if (want === power) return { power, bootedAt };
      return want === 'off' ? { power: want, bootedAt } : { power: 'on', bootedAt: this.#booted() };
    });
  }

  async rebuild(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    signal.throwIfAborted();
    return this.#change(spec, change, 'rebuild', () => ({
      ...madeOf(spec),
      power: 'on',
      bootedAt: this.#booted(),
    }));
  }

  async resize(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    signal.throwIfAborted();
    return this.#change(spec, change, 'resize', ({ power = 'on' }) => {
      if (power === 'on') throw new DriverError('rejected', 'The machine is on.');
      return madeOf(spec);
    });
  }

  async move(key: MachineKey, host: string, signal: AbortSignal): Promise<Observation> {
    signal.throwIfAborted();
    const machine = this.#read(key);
    if (!machine) throw new DriverError('failed', 'There is no machine of that order.');
    if (machine.host !== host) {
      if (machine.power !== 'off') throw new DriverError('rejected', 'The machine is on.');
      this.#write(key, { ...machine, host });
      this.#note('move', key);
    }
    return this.#observation(key, { ...machine, host });
  }

  async destroy(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    signal.throwIfAborted();
    if (existsSync(this.#file(key))) {
      rmSync(this.#file(key), { force: true });
      this.#note('destroy', key);
    }
    return this.#observation(key, undefined);
  }

  /** Whether the folder exists. */
  async reachable(): Promise<boolean> {
    return existsSync(this.#folder);
  }

  /** All changes, oldest first: `create SRV-… 1`. */
  journal(): string[] {
    const file = join(this.#folder, 'journal');
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  }

  /** Writes the machine after a change, once for each change. */
  #change(key: MachineKey, change: string, call: string, to: (machine: Machine) => Partial<Machine>): Observation {
    const machine = this.#read(key);
    if (!machine) throw new DriverError('failed', 'There is no machine of that order.');
    if (machine.change === change) return this.#observation(key, machine);
    const changed = { ...machine, ...to(machine), change };
    this.#write(key, changed);
    this.#note(call, key);
    return this.#observation(key, changed);
  }

  #machines(): (MachineKey & { machine: Machine })[] {
    return readdirSync(this.#folder).flatMap((name) => {
      const [, order, generation] = /^(.+)\.(\d+)\.json$/.exec(name) ?? [];
      if (!order) return [];
      const key = { order, generation: Number(generation) };
      const machine = this.#read(key);
      return machine ? [{ ...key, machine }] : [];
    });
  }

  #write(key: MachineKey, machine: Machine) {
    const partial = `${this.#file(key)}.${randomUUID()}`;
    writeFileSync(partial, JSON.stringify(machine));
    renameSync(partial, this.#file(key));
  }

  #booted() {
    return Date.now() + this.#bootSeconds * 1000;
  }

  #file({ order, generation }: MachineKey) {
    return join(this.#folder, `${order}.${generation}.json`);
  }

  /** Writes a new file in one step. Of two simultaneous writers one wins. @returns whether this one did */
  #place(file: string, content: string): boolean {
    const partial = `${file}.${randomUUID()}`;
    writeFileSync(partial, content);
    try {
      linkSync(partial, file);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    } finally {
      rmSync(partial, { force: true });
    }
  }

  #read(key: MachineKey): Machine | undefined {
    if (!existsSync(this.#file(key))) return undefined;
    return JSON.parse(readFileSync(this.#file(key), 'utf8')) as Machine;
  }

  #note(call: string, { order, generation }: MachineKey) {
    appendFileSync(join(this.#folder, 'journal'), `${call} ${order} ${generation}\n`);
  }

  /** A file without `power` is of an older version, and its machine is on. */
  #observation({ order, generation }: MachineKey, machine: Machine | undefined): Observation {
    if (!machine) return { order, generation, phase: 'absent', proven: false };
    const { power = 'on', bootedAt, size, image, host, addresses } = machine;
    const proven = power === 'on' && bootedAt <= Date.now();
    const about = { ...(size && { size }), ...(image && { image }), ...(host && { host }) };
    const known = { ...about, ...(addresses && { addresses }) };
    return { order, generation, phase: 'present', power, proven, ...known };
  }
}

const madeOf = ({ traits, ...spec }: MachineSpec) => ({
  ...{ specDigest: digestOf(spec), size: spec.size, image: spec.image },
  addresses: [spec.network.ipv4, spec.network.ipv6].flatMap((one) => one?.address ?? []),
  ...(traits && { portMbps: traits.portMbps }),
});

/** A machine that serves a small page now and then. */
function readingOf({ bootedAt, portMbps, size }: Machine): Omit<Reading, keyof MachineKey> {
  const seconds = Math.max(0, Math.round((Date.now() - bootedAt) / 1000));
  const { vcpus, memoryMb, diskGb } = size ?? { vcpus: 1, memoryMb: 1024, diskGb: 10 };
  return {
    epoch: String(bootedAt),
    ...{ sentBytes: seconds * 40_000, receivedBytes: seconds * 9_000, sentPackets: seconds * 50 },
    ...{ cpuNs: seconds * vcpus * 30_000_000, memoryBytes: memoryMb * 300_000, diskBytes: diskGb * 100_000_000 },
    portMbps: portMbps ?? null,
  };
}
