/**
 * Asks each driver twice a minute whether it reaches what it drives. The status page reads what was found. An engine of
 * which many machines vanished at once is not well, even if it answers; nor is a region of which a host is offline.
 */

import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import {
  type Health,
  machinesComponent,
  PAYMENTS_COMPONENT,
  X402_WARNING_COMPONENT,
} from '../../../entities/transparency/health.ts';
import { X402_GATEWAY } from '../../payments/chains/health.ts';
import type { PaymentDriver } from '../../payments/drivers/driver.ts';
import type { X402Driver, X402Health } from '../../payments/drivers/x402/driver.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import type { HardwareDriver } from '../drivers/driver.ts';

export const DRIVER_HEALTH_PROCESS = 'driver-health';
const TICK_SECONDS = 30;
/** Who says nothing for so long is not reached. */
const ANSWER_SECONDS = 10;

type Found = Omit<Health, 'checkedAt'>;

interface Drivers {
  machines: readonly HardwareDriver[];
  payments: readonly PaymentDriver[];
  x402?: X402Driver | undefined;
}

export const driverHealthProcess = (db: Database, { machines, payments, x402 }: Drivers): Process =>
  periodic({
    start: async ({ aborted }) => {
      const ask = (asked: (signal: AbortSignal) => Promise<boolean>) => answered(asked, aborted);
      const regions = await db.query<{ code: string }>(
        `select code from catalog_item where kind = 'bastion' and offered`,
      );
      const breakers = await db.query<{ driver: string }>('select driver from brake');
      const offline = await db.query<{ region: string }>(
        `select distinct region_code as region from host where state = 'OFFLINE'`,
      );
      const isBreakerOpen = machines.some(({ name }) => breakers.some(({ driver }) => driver === name));
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
          const answers = [...new Set(machines)].map((driver) =>
            ask(async (signal) => (await driver.reachable?.(code, signal)) ?? true),
          );
          const { component, status } = await statusOf(machinesComponent(code), answers);
          const isPartlyOut = isBreakerOpen || offline.some(({ region }) => region === code);
          return { component, status: isPartlyOut && status === 'operational' ? 'partial_outage' : status };
        }),
      ]);
      return hop('start', {
        afterSeconds: TICK_SECONDS,
        commit: async (tx) => {
          await tx.query(KEEP, [found.map(({ component }) => component), found.map(({ status }) => status)]);
          if (x402Health) await warn(tx, x402Health);
        },
      });
    },
  });

/** Tells the operator, once while it is so. */
async function warn(tx: Transaction, { warning }: X402Health): Promise<void> {
  const [changed] = await tx.query<{ warned: boolean }>(WARN, [
    X402_WARNING_COMPONENT,
    warning === undefined ? 'operational' : 'partial_outage',
  ]);
  if (changed && warning !== undefined)
    await record(tx, OPERATOR_ACCOUNT, X402_GATEWAY, { type: 'gateway.warned', actor: SYSTEM, data: { warning } });
}

/** False for an error, and for silence. */
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

const WARN = `
  insert into health as kept (component, status, checked_at) values ($1, $2, now())
  on conflict (component) do update set status = excluded.status, checked_at = now() where kept.status <> excluded.status
  returning true as warned`;

const KEEP = `
  insert into health (component, status, checked_at) select given.*, now() from unnest($1::text[], $2::text[]) as given order by 1
  on conflict (component) do update set status = excluded.status, checked_at = now()`;
