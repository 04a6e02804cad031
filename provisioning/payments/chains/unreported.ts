/**
 * Credited payments that who is asked for them does not show any more. Nothing is taken back for that: a wallet may have been
 * restored wrongly, an invoice been marked by hand, and Monero's wallet does not show what a reorganisation has put back among
 * what is announced until it is in a block again. The operator is told, once, and again when it is back; whether the
 * balance is adjusted, and the account suspended, is for a human to decide.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import type { ObservedPayment } from '../drivers/driver.ts';
import { tell } from '../top-ups/credit.ts';
import type { Origin } from './observed-payments.ts';

/** @param payments all that there are of the top-up */
export async function tellUnreported(
  tx: Transaction,
  { network, orderNumber }: Pick<Origin, 'network' | 'orderNumber'>,
  payments: readonly ObservedPayment[],
): Promise<void> {
  const changed = await tx.query<Pick<Payment, 'id' | 'orderNumber' | 'network' | 'txId' | 'missingSince'>>(CHANGE, [
    network,
    orderNumber,
    payments.map(({ txId }) => txId),
    payments.map(({ position }) => position),
  ]);
  for (const payment of changed) await tell(tx, payment, payment.missingSince ? 'payment.missing' : 'payment.found');
}

const CHANGE = `
  with shown as (select * from unnest($3::text[], $4::int[]) as shown(tx_id, position)),
    looked as (
      select id, exists (select 1 from shown where (shown.tx_id, shown.position) = (payment.tx_id, payment.position)) as there
      from payment where network = $1 and order_number = $2 and status = 'CREDITED' order by id for update)
  update payment set missing_since = case when there then null else now() end
  from looked where payment.id = looked.id and there = (missing_since is not null)
  returning payment.id, order_number, network, tx_id, missing_since`;
