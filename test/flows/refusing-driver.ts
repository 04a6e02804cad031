import { DriverError, type DriverErrorCode, type Observation } from '../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';

export type RefusedCall = 'create' | 'power' | 'rebuild' | 'resize';
type Parameters_<Call extends RefusedCall> = Parameters<SimulatedDriver[Call]>;

/** Does not do what is named, and says so. */
export class RefusingDriver extends SimulatedDriver {
  /** May be changed while it works. */
  refused: readonly string[];
  readonly #code: DriverErrorCode;

  constructor(folder: string, refused: readonly string[], code: DriverErrorCode = 'rejected') {
    super({ folder, bootSeconds: 0 });
    this.refused = refused;
    this.#code = code;
  }
  override async create(...given: Parameters_<'create'>): Promise<Observation> {
    return this.#refuse('create') ?? super.create(...given);
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
  #refuse(call: RefusedCall): undefined {
    if (this.refused.includes(call)) throw new DriverError(this.#code, 'refused for the test');
  }
}
