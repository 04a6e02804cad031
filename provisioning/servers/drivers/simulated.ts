/**
 * Simulated machines: a file each, in a folder, so that they outlive the service as real machines do. A machine
 * boots for some seconds and then gives proof. The journal says what was really made and removed.
 */
import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DriverError, type HardwareDriver, type MachineKey, type MachineSpec, type Observation } from './driver.ts';

interface Machine {
  specDigest: string;
  /** Milliseconds since the epoch. */
  bootedAt: number;
}

export class SimulatedDriver implements HardwareDriver {
  readonly name = 'simulated';
  readonly simulated = true;
  readonly #folder: string;
  readonly #bootSeconds: number;

  constructor({ folder, bootSeconds }: { folder: string; bootSeconds: number }) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
    this.#bootSeconds = bootSeconds;
  }

  async create(spec: MachineSpec, _signal: AbortSignal): Promise<Observation> {
    const specDigest = createHash('sha256').update(JSON.stringify(spec)).digest('hex');
    const file = this.#file(spec);
    if (!existsSync(file)) {
      const machine: Machine = { specDigest, bootedAt: Date.now() + this.#bootSeconds * 1000 };
      if (this.#place(file, JSON.stringify(machine))) this.#note('create', spec);
    }
    const machine = this.#read(spec);
    if (machine && machine.specDigest !== specDigest) {
      throw new DriverError('conflict', 'There is a machine of that order with another specification.');
    }
    return this.#observation(spec, machine);
  }

  async observe(key: MachineKey, _signal: AbortSignal): Promise<Observation> {
    return this.#observation(key, this.#read(key));
  }

  async destroy(key: MachineKey, _signal: AbortSignal): Promise<Observation> {
    if (existsSync(this.#file(key))) {
      rmSync(this.#file(key), { force: true });
      this.#note('destroy', key);
    }
    return this.#observation(key, undefined);
  }

  /** What was done, oldest first: `create SRV-… 1`. */
  journal(): string[] {
    const file = join(this.#folder, 'journal');
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  }

  #file({ order, generation }: MachineKey) {
    return join(this.#folder, `${order}.${generation}.json`);
  }

  /** Of two who make the same machine one wins, and nobody ever reads half a file. */
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
    return existsSync(this.#file(key)) ? (JSON.parse(readFileSync(this.#file(key), 'utf8')) as Machine) : undefined;
  }

  #note(call: string, { order, generation }: MachineKey) {
    appendFileSync(join(this.#folder, 'journal'), `${call} ${order} ${generation}\n`);
  }

  #observation({ order, generation }: MachineKey, machine: Machine | undefined): Observation {
    const proven = machine !== undefined && machine.bootedAt <= Date.now();
    return { order, generation, phase: machine ? 'present' : 'absent', proven };
  }
}
