/** Requests for a server in a status, from its owner or from the clock. */
import { available, lockAvailable, post, withheld } from '../../entities/payments/ledger.ts';
import type { ServerStatus } from '../../entities/servers/server.ts';
import { RENEWAL_PROCESS, RESUME_TASK } from '../../provisioning/servers/billing/renew.ts';
import { resumeAffordable, retrySuspended } from '../../provisioning/servers/billing/resume.ts';
import { suspend } from '../../provisioning/servers/billing/suspend.ts';
import { schedule } from '../../provisioning/tasks/schedule.ts';
import { updateServer } from '../../resolvers/servers/update.ts';
import type { CustomerShop } from '../setup/customer-shop.ts';

export type Ask = [from: ServerStatus, ask: (shop: CustomerShop, orderNumber: string) => Promise<unknown>];

export const update = (from: ServerStatus, wanted: Parameters<typeof updateServer>[2]): Ask => [
  from,
  ({ context }, orderNumber) => updateServer(context, orderNumber, wanted),
];
export const stop = update('RUNNING', { powerState: 'OFF' });
export const resize = update('STOPPED', { serviceCode: 'vps-2' });

export const suspendFrom = (status: 'RUNNING' | 'STOPPED'): Ask => [
  status,
  ({ db, accountId }, orderNumber) =>
    db.transaction((tx) =>
      suspend(tx, { kind: 'VPS', orderNumber, accountId, host: null, status }, 'insufficient_balance'),
    ),
];
export const resume: Ask = [
  'SUSPENDED',
  ({ db, accountId }) => db.transaction((tx) => resumeAffordable(tx, accountId)),
];

/** Changes the row, such as to another time, and lets the clock of renewals tick. */
export const tick = (from: ServerStatus, set: string): Ask => [
  from,
  async ({ db }, orderNumber) => {
    await db.query(`update server set ${set} where order_number = $1`, [orderNumber]);
    await schedule(db, [RENEWAL_PROCESS]);
  },
];
export const DUE = `paid_until = now() - interval '1 second'`;
export const paid: Ask = [
  'SUSPENDED',
  ({ db, accountId }) => db.transaction((tx) => retrySuspended(tx, [accountId], RESUME_TASK)),
];
/** Suspends the account with its servers, as if the server had been busy, and lets the clock of renewals tick. */
export const keptOff: Ask = [
  'RUNNING',
  async ({ db, accountId }) => {
    await db.query(
      `update account set suspended_at = now(), suspended_for = 'Abuse', servers_off = true where id = $1`,
      [accountId],
    );
    await schedule(db, [RENEWAL_PROCESS]);
  },
];
/** Lets the whole balance wait for a payment that is final meanwhile, and lets the clock of renewals tick. */
export const released: Ask = [
  'SUSPENDED',
  async ({ db, accountId }) => {
    await db.transaction(async (tx) => {
      const [debit, credit] = [available(accountId), withheld(accountId)];
      const amountMicros = await lockAvailable(tx, accountId);
      const common = { kind: 'refund', externalKey: `waiting ${accountId}`, description: 'test' } as const;
      await post(tx, accountId, { ...common, debit, credit, amountMicros });
    });
    await schedule(db, [RENEWAL_PROCESS]);
  },
];
