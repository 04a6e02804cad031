import {
  DriverError,
  type DriverErrorCode,
  type MachineKey,
  type Observation,
} from '../../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../../provisioning/servers/drivers/simulated.ts';

export type RefusedCall = 'create' | 'power' | 'rebuild' | 'resize';
/**
 * A fault of the first machine: `silent` never gives proof of life, `stuck` can be neither finished nor removed. While it is
 * `mute`, no machine gives proof.
 */
export type Trouble = 'silent' | 'stuck' | 'mute';
type Parameters_<Call extends RefusedCall> = Parameters<SimulatedDriver[Call]>;

/** A simulated driver that refuses the named calls. */
export class RefusingDriver extends SimulatedDriver {
  /** The test may change this at any time. */
  refused: readonly string[];
  readonly #code: DriverErrorCode;

  constructor(folder: string, refused: readonly string[], code: DriverErrorCode = 'rejected') {
    super({ folder, bootSeconds: 0 });
    this.refused = refused;
    this.#code = code;
  }
  override async create(...given: Parameters_<'create'>): Promise<Observation> {
    this.#refuse('create');
    const made = await super.create(...given);
    this.#getStuck(given[0]);
    return made;
  }
  override async observe(...given: Parameters<SimulatedDriver['observe']>): Promise<Observation> {
    const seen = await super.observe(...given);
    return this.refused.includes('mute') || this.#isInTrouble('silent', given[0]) ? { ...seen, proven: false } : seen;
  }
  override async destroy(...given: Parameters<SimulatedDriver['destroy']>): Promise<Observation> {
    this.#getStuck(given[0]);
    return super.destroy(...given);
  }
  override async power(...given: Parameters_<'power'>): Promise<Observation> {
    return this.#refuse('power') ?? super.power(...given);
  }
  override async rebuild(...given: Parameters_<'rebuild'>): Promise<Observation> {
    return this.#refuse('rebuild') ?? super.rebuild(...given);
  }
  override async resize(...given: Parameters_<'resize'>): Promise<Observation> {
    return this.#refuse('resize') ?? super.resize(...given);
  }
  #isInTrouble = (trouble: Trouble, { generation }: MachineKey) => generation === 1 && this.refused.includes(trouble);
  #getStuck(machine: MachineKey) {
    if (this.#isInTrouble('stuck', machine)) throw new DriverError('stuck', 'stuck for the test');
  }
  #refuse(call: RefusedCall): undefined {
    if (this.refused.includes(call)) throw new DriverError(this.#code, 'refused for the test');
  }
}
