/** Counts the calls of drivers to engines and gateways, and makes a span of each. */
import { DRIVER_CALL_SECONDS, DRIVER_CALLS } from '../entities/monitoring/measures.ts';
import { traced } from '../entities/monitoring/traces.ts';
import type { PaymentDriver } from './payments/drivers/driver.ts';
import type { X402Driver } from './payments/drivers/x402/driver.ts';
import { DriverError, type HardwareDriver } from './servers/drivers/driver.ts';

type Parts<Driver> = { readonly [K in keyof Driver]?: Driver[K] };

/** The labels of a driver: `engine` or `gateway`, and its name. */
type As = readonly [kind: 'engine' | 'gateway', name: string];

/** Returns an object whose asynchronous methods are counted under these labels. @param parts replaces members of it */
function counted<Driver extends object>(driver: Driver, as: As, parts: Parts<Driver> = {}): Driver {
  return new Proxy(driver, {
    get: (_, key) => {
      if (Object.hasOwn(parts, key)) return parts[key as keyof Driver];
      const member: unknown = Reflect.get(driver, key, driver);
      if (typeof member !== 'function' || typeof key !== 'string') return member;
      return (...given: unknown[]) => {
        const startedAt = performance.now();
        return traced('client', `${as[0]} ${as[1]} ${key}`, (span): unknown => {
          const answer: unknown = member.apply(driver, given);
          if (!(answer instanceof Promise)) return answer;
          const note = (outcome: string) => {
            DRIVER_CALLS.add(...as, key, outcome);
            DRIVER_CALL_SECONDS.observe((performance.now() - startedAt) / 1000, ...as);
            span.note({ 'freehold.driver': as[1], 'freehold.call': key, 'freehold.outcome': outcome });
          };
          answer.then(
            () => note('ok'),
            (error) => note(outcomeOf(error)),
          );
          return answer;
        });
      };
    },
  });
}

/** The code of a driver's error. Other errors are one outcome, because their codes may come from the other side. */
const outcomeOf = (error: unknown): string => (error instanceof DriverError ? error.code : 'error');

/** Makes a function that counts drivers. The same driver is the same object each time. */
function counting<Driver extends object>(count: (driver: Driver) => Driver): (driver: Driver) => Driver {
  const known = new WeakMap<Driver, Driver>();
  return (driver) => {
    const found = known.get(driver) ?? count(driver);
    known.set(driver, found);
    return found;
  };
}

/** Return the driver with its calls counted. Each work with a node of a chain is a call `ask`. */
export const countedEngine = counting((driver: HardwareDriver) => counted(driver, ['engine', driver.name]));
export const countedX402 = counting((driver: X402Driver) => counted(driver, ['gateway', driver.name]));
export const countedGateway = counting((driver: PaymentDriver) => {
  const as = ['gateway', driver.name] as const;
  const chains = driver.chains?.map((chain) => counted(chain, as, { nodes: counted(chain.nodes, as) }));
  return counted(driver, as, { chains });
});
