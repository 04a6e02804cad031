/**
 * Notices payments at a gateway and their confirmations by one call for all its top-ups, and wakes their tasks. So unpaid
 * top-ups, which cost nothing, keep no payment waiting.
 */
import type { Database } from '../../../entities/database/database.ts';
import { FIND_NEWS } from '../../../entities/payments/observed-payment.ts';
import { signalTask } from '../../../entities/tasks/start.ts';
import { periodic } from '../../tasks/schedule.ts';
import { nap, type Process } from '../../tasks/tasks.ts';
import type { PaymentDriver } from '../drivers/driver.ts';
import { formatUnits } from './amount.ts';

/** The least pause between two calls. */
const PAUSE_SECONDS = 5;
/** The longest one, while the gateway does not answer. */
const FAILED_PAUSE_SECONDS = 60;

export const noticeName = (driver: PaymentDriver): string => `notice:${driver.coins()[0]!.code}`;

export function noticeProcess(db: Database, driver: PaymentDriver, pollSeconds: number): Process {
  const pauseSeconds = Math.max(pollSeconds, PAUSE_SECONDS);
  const decimalsOf = (coin: string) => driver.coins().find(({ code }) => code === coin)!.decimals;
  return {
    ...periodic({
      start: async ({ aborted }) => {
        const seen = await driver.received!(aborted);
        const columns = [
          seen.map(({ orderNumber = null }) => orderNumber),
          seen.map(({ address = null }) => address),
          seen.map(({ payment }) => payment?.txId ?? null),
          seen.map(({ payment }) => (payment ? formatUnits(payment.units, decimalsOf(payment.coin)) : null)),
          seen.map(({ confirmations }) => confirmations),
        ];
        for (const { orderNumber } of await FIND_NEWS.all(db, columns))
          await db.transaction((tx) => signalTask(tx, orderNumber));
        return nap(pauseSeconds);
      },
    }),
    backoffSeconds: (attempt) => Math.min(FAILED_PAUSE_SECONDS, pauseSeconds * 2 ** attempt),
  };
}
