import { DriverError, type Observation } from '../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';

/** Makes no machine, and says so. */
export class RefusingDriver extends SimulatedDriver {
  constructor(folder: string) {
    super({ folder, bootSeconds: 0 });
  }
  override async create(): Promise<Observation> {
    throw new DriverError('rejected', 'refused for the test');
  }
}
