/**
 * Asks each driver twice a minute whether it reaches its engine or gateway. The status page shows the answers. An engine
 * with an open circuit breaker is partly out, even if it answers. So is a region with an offline host.
 */
import { CatalogItem } from '../../../entities/catalog.ts';
import type { Database } from '../../../entities/database/database.ts';
import { findAll } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { FIND_IDLE_ENGINES } from '../../../entities/servers/engine.ts';
import { CircuitBreaker } from '../../../entities/servers/finding.ts';
import { FIND_OFFLINE_REGIONS } from '../../../entities/servers/host.ts';
import {
  CHANGE_HEALTH,
  type Health,
  machinesComponent,
  PAYMENTS_COMPONENT,
  WRITE_HEALTH,
  X402_WARNING_COMPONENT,
} from '../../../entities/transparency/health.ts';
import { X402_GATEWAY } from '../../payments/chains/health.ts';
import type { PaymentDriver } from '../../payments/drivers/driver.ts';
import type { X402Driver, X402Health } from '../../payments/drivers/x402/driver.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import type { Engines } from '../engines.ts';

export const DRIVER_HEALTH_PROCESS = 'driver-health';
const TICK_SECONDS = 30;
/** Seconds without an answer after which a driver counts as unreachable. */
const ANSWER_SECONDS = 10;

type Found = Omit<Health, 'checkedAt'>;

interface Drivers {
  engines: Pick<Engines, 'all'>;
  payments: readonly PaymentDriver[];
  x402?: X402Driver | undefined;
}

export const driverHealthProcess = (db: Database, { engines, payments, x402 }: Drivers): Process =>
  periodic({
    start: async ({ aborted }) => {
      const ask = (asked: (signal: AbortSignal) => Promise<boolean>) => answered(asked, aborted);
      const regions = await findAll(db, CatalogItem, { kind: 'bastion', offered: true });
      // They have no customers, and get none.
      const idle = new Set((await FIND_IDLE_ENGINES.all(db)).map(({ name }) => name));
      const all = (await engines.all()).filter(({ name }) => !idle.has(name));
      const breakers = await findAll(db, CircuitBreaker, {});
      const offline = await FIND_OFFLINE_REGIONS.all(db);
      let x402Health: X402Health | undefined;
      const askX402 = async (signal: AbortSignal) => {
        x402Health = await x402!.health!(signal);
        return x402Health.reachable;
      };
      const found = await Promise.all([
        statusOf(PAYMENTS_COMPONENT, [
          ...payments.map((driver) => ask(async (signal) => (await driver.reachable?.(signal)) ?? true)),
          ...(x402?.health ? [ask(askX402)] : []),
        ]),
        ...regions.map(async ({ code }): Promise<Found> => {
          const here = all.filter(({ region }) => region === null || region === code);
          const answers = here.map(({ driver }) =>
            ask(async (signal) => (await (await driver()).reachable?.(code, signal)) ?? true),
          );
          const isBreakerOpen = here.some(({ name }) => breakers.some((breaker) => breaker.driver === name));
          const { component, status } = await statusOf(machinesComponent(code), answers);
          const isPartlyOut = isBreakerOpen || offline.some(({ regionCode }) => regionCode === code);
          return { component, status: isPartlyOut && status === 'operational' ? 'partial_outage' : status };
        }),
      ]);
      return hop('start', {
        afterSeconds: TICK_SECONDS,
        commit: async (tx) => {
          await WRITE_HEALTH.all(tx, [found.map(({ component }) => component), found.map(({ status }) => status)]);
          if (x402Health) await warn(tx, x402Health);
        },
      });
    },
  });

/** Records a new warning for the operator, once while it lasts. */
async function warn(tx: Transaction, { warning }: X402Health): Promise<void> {
  const status = warning === undefined ? 'operational' : 'partial_outage';
  const changed = await CHANGE_HEALTH.first(tx, [X402_WARNING_COMPONENT, status]);
  if (changed && warning !== undefined)
    await record(tx, OPERATOR_ACCOUNT, X402_GATEWAY, { type: 'gateway.warned', actor: SYSTEM, data: { warning } });
}

/** Whether a driver answered in time, and without an error. */
async function answered(ask: (signal: AbortSignal) => Promise<boolean>, aborted: AbortSignal): Promise<boolean> {
  const signal = AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_SECONDS * 1000)]);
  const silence = new Promise<boolean>((resolve) => signal.addEventListener('abort', () => resolve(false)));
  const reached = await Promise.race([ask(signal).catch(() => false), silence]);
  aborted.throwIfAborted();
  return reached;
}

async function statusOf(component: string, answers: Promise<boolean>[]): Promise<Found> {
  const reached = await Promise.all(answers);
  if (reached.every(Boolean)) return { component, status: 'operational' };
  return { component, status: reached.some(Boolean) ? 'partial_outage' : 'major_outage' };
}
