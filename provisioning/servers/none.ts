/** The driver of a kind of servers that the configuration does not make. Nothing asks it: its engine gets no order. */
import { NO_ENGINE } from '../../entities/servers/engine.ts';
import { DriverError, type HardwareDriver } from './drivers/driver.ts';

const refuse = async (): Promise<never> => {
  throw new DriverError('unreachable', 'The configuration has no driver for servers of this kind.');
};

/** Its engine sells on hosts alone, and the service takes no host of it. So no region sells the kind. */
export const NO_DRIVER: HardwareDriver = {
  ...{ name: NO_ENGINE, simulated: false, needsHosts: true },
  ...{ capacity: async () => [], list: async () => [] },
  ...{ create: refuse, observe: refuse, power: refuse, rebuild: refuse, resize: refuse, destroy: refuse },
};
