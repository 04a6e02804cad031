/** The steps of the workers: their work, abandoned leases, and crashes. */
import { chainSyncName } from '../../../provisioning/payments/chains/sync.ts';
import { RENEWAL_PROCESS } from '../../../provisioning/servers/billing/renew.ts';
import { cronSubject } from '../../../provisioning/tasks/schedule.ts';
import type { Shop } from '../../setup/shop.ts';
import { type Doing, pick } from './town.ts';

export const WORKER: Doing<'crash' | 'abandon' | 'work'> = {
  crash: ({ crashes }, { moment }) => crashes.next(moment),
  abandon: ({ shop }, step) => shop.provisioning.newWorker().lease(pick(step, ['payments', 'periodic', 'servers'])!),
  work: ({ shop, coins }, { which }) => {
    if (which % 3 === 0) coins.secure();
    return work(shop, which % 5 === 0);
  },
};

/**
 * Runs all due tasks, and those that would be due later.
 * @param late half an hour has passed: the quotes of closed top-ups expire, and all tasks that watch run once more
 */
export async function work({ db, provisioning }: Shop, late = true): Promise<void> {
  const worker = provisioning.newWorker();
  if (late) {
    await db.query(
      `update top_up set expires_at = now() where expires_at > now() and status not in ('PENDING', 'CONFIRMING')`,
    );
  }
  await db.query(
    `with aged as (
        update payment set created_at = created_at - interval '1 minute' where mode = 'X402' and status = 'OBSERVED' returning id)
      update x402_authorization set lease_until = now() from aged where payment_id = id`,
  );
  const periodic = ['testnet', 'tagged'].map(chainSyncName);
  await db.query(WAKE, [[...periodic, RENEWAL_PROCESS].map(cronSubject), late]);
  for (const lane of ['periodic', 'payments', 'servers']) await worker.drain(lane).catch(() => {});
}
/** Wakes a top-up only after its expiry, because the chain sync observes its payments before. */
const WAKE = `
  update task set run_at = now(), leased_by = null
  where subject = any($1) or (lane <> 'periodic'
    and ($2 or not exists (select from top_up where order_number = subject and expires_at > now())))`;
