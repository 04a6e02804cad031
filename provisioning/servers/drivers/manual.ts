/**
 * Machines that people make. Each call of the driver adds a job to a queue; an operator does it, and closes it. The jobs of a
 * machine determine its state. The machine exists until an operator has closed its DESTROY job.
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
} from './driver.ts';

export type ManualAction = 'CREATE' | 'POWER' | 'REBUILD' | 'RESIZE' | 'DESTROY';

export interface QueuedJob {
  orderNumber: string;
  generation: number;
  action: ManualAction;
  /** The id of the change; empty for CREATE and DESTROY. */
  change: string;
  power: PowerChange | null;
  specDigest: string | null;
  state: 'OPEN' | 'DONE' | 'FAILED';
}

/** The store of the queue. */
export interface ManualQueue {
  /** The jobs of one machine, oldest first. */
  of(machine: MachineKey): Promise<QueuedJob[]>;
  /** The jobs of all machines that are not gone, oldest first. */
  all(): Promise<QueuedJob[]>;
  /** Adds a job, unless the machine has one for that action and change. */
  add(
    machine: MachineKey,
    job: Pick<QueuedJob, 'action' | 'change' | 'power' | 'specDigest'>,
    spec?: MachineSpec,
  ): Promise<void>;
}

export class ManualDriver implements HardwareDriver {
  readonly name = 'manual';
  readonly simulated = false;
  readonly #queue: ManualQueue;
  constructor(queue: ManualQueue) {
    this.#queue = queue;
  }

  /** Lists no hosts, since the operator picks them. */
  async capacity(): Promise<HostReport[]> {
    return [];
  }

  async list(): Promise<Observation[]> {
    const machines = Map.groupBy(await this.#queue.all(), (job) => `${job.orderNumber}.${job.generation}`);
    return [...machines.values()]
      .map((jobs) => observation({ order: jobs[0]!.orderNumber, generation: jobs[0]!.generation }, jobs))
      .filter(({ phase }) => phase !== 'absent');
  }

  async create(spec: MachineSpec, signal: AbortSignal): Promise<Observation> {
    signal.throwIfAborted();
    const specDigest = digestOf(spec);
    await this.#queue.add(spec, { action: 'CREATE', change: '', power: null, specDigest }, spec);
    const jobs = await this.#queue.of(spec);
    if (goneOf(jobs)) throw new DriverError('failed', 'The machine of that order is being removed.');
    // The last specification, which can be that of a resize or a rebuild.
    const asked = jobs.findLast((job) => job.specDigest && (job.state !== 'FAILED' || job.action === 'CREATE'));
    if (asked!.specDigest !== specDigest)
      throw new DriverError('conflict', 'There is a machine of that order with another specification.');
    if (jobs[0]!.state === 'FAILED') throw new DriverError('rejected', 'The operator could not make the machine.');
    return observation(spec, jobs);
  }

  async observe(machine: MachineKey): Promise<Observation> {
    return observation(machine, await this.#queue.of(machine));
  }

  async power(machine: MachineKey, want: PowerChange, change: string, signal: AbortSignal): Promise<Observation> {
    const jobs = await this.#existing(machine, signal, want === 'off');
    // An open job may change the power, so the machine then needs another job even if it is on.
    if (!jobs.some(isOpen) && powerOf(jobs) === want) return observation(machine, jobs);
    return this.#ask(machine, 'POWER', change, want);
  }

  async rebuild(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    await this.#existing(spec, signal);
    return this.#ask(spec, 'REBUILD', change, null, spec);
  }

  async resize(spec: MachineSpec, change: string, signal: AbortSignal): Promise<Observation> {
    if (powerOf(await this.#existing(spec, signal)) !== 'off') throw new DriverError('rejected', 'The machine is on.');
    return this.#ask(spec, 'RESIZE', change, null, spec);
  }

  async destroy(machine: MachineKey, signal: AbortSignal): Promise<Observation> {
    signal.throwIfAborted();
    const jobs = await this.#queue.of(machine);
    // Even if it was never made: the operator may be making it.
    if (jobs.length) await this.#queue.add(machine, { action: 'DESTROY', change: '', power: null, specDigest: null });
    return observation(machine, await this.#queue.of(machine));
  }

  async #ask(
    machine: MachineKey,
    action: ManualAction,
    change: string,
    power: PowerChange | null,
    spec?: MachineSpec,
  ): Promise<Observation> {
    await this.#queue.add(machine, { action, change, power, specDigest: spec ? digestOf(spec) : null }, spec);
    const jobs = await this.#queue.of(machine);
    if (jobs.find((job) => job.action === action && job.change === change)?.state === 'FAILED')
      throw new DriverError('rejected', `The operator could not do the job ${action}.`);
    return observation(machine, jobs);
  }

  /** The jobs of an existing machine. A machine that is being removed can still be turned off. */
  async #existing(machine: MachineKey, signal: AbortSignal, leaving = false): Promise<QueuedJob[]> {
    signal.throwIfAborted();
    const jobs = await this.#queue.of(machine);
    const gone = goneOf(jobs);
    if (!jobs.length || gone?.state === 'DONE' || (gone && !leaving))
      throw new DriverError('failed', 'There is no machine of that order.');
    return jobs;
  }
}

const isOpen = ({ state }: QueuedJob) => state === 'OPEN';
const goneOf = (jobs: QueuedJob[]) => jobs.find(({ action }) => action === 'DESTROY');

/** The power after the last job that changed it. */
function powerOf(jobs: QueuedJob[]): Power | undefined {
  const done = jobs.filter(({ state, action }) => state === 'DONE' && action !== 'RESIZE' && action !== 'DESTROY');
  if (!done.length) return undefined;
  return done.at(-1)!.power === 'off' ? 'off' : 'on';
}

function observation({ order, generation }: MachineKey, jobs: QueuedJob[]): Observation {
  const key = { order, generation };
  const gone = goneOf(jobs);
  if (!jobs.length || gone?.state === 'DONE') return { ...key, phase: 'absent', proven: false };
  const made = jobs[0]!.state === 'DONE' && !gone;
  const open = jobs.find(isOpen);
  // During an open job the state is unknown, however long it takes.
  if (open) return { ...key, phase: 'unknown', proven: false, detail: `${open.action} waits for the operator` };
  const power = powerOf(jobs);
  return {
    ...key,
    phase: made ? 'present' : 'incomplete',
    ...(power && { power }),
    proven: made && power === 'on',
    detail: 'nothing to do',
  };
}
