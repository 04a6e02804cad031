/** Traffic above the tier: the warnings, and the payment of each begun TB. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { recordAll } from '../../../entities/history/record.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { available, lockAccount, postAll, REVENUE } from '../../../entities/payments/ledger.ts';
import { type Due, LOCK_DUE_TRAFFIC, NOTE_TRAFFIC } from '../../../entities/servers/metering/traffic.ts';

/** Warns servers, and charges as many begun TB as their balances can pay. The key of each transfer names the month and the TB. */
export async function chargeTraffic(tx: Transaction, found: readonly Due[]): Promise<void> {
  if (!found.length) return;
  const balances = await lockAccount(tx, ...new Set(found.map(({ accountId }) => accountId)));
  const left = new Map(balances.map(({ accountId, availableMicros }) => [accountId, availableMicros]));
  const due = await LOCK_DUE_TRAFFIC.all(tx, [found.map(({ orderNumber }) => orderNumber)]);
  const judged = due.map((one) => ({ ...one, paidTb: one.chargedTb + payable(one, left) }));
  await postAll(
    tx,
    judged.flatMap(({ paidTb, ...one }) => postings(one, paidTb)),
  );
  await NOTE_TRAFFIC.all(tx, [
    judged.map(({ orderNumber }) => orderNumber),
    judged.map(({ percent, warnedPercent }) => Math.max(percent, warnedPercent)),
    judged.map(({ paidTb }) => paidTb),
  ]);
  await recordAll(
    tx,
    judged.flatMap((one) => happenings(one)),
  );
  tx.changedAll(judged.map(({ accountId, orderNumber: id }) => ({ kind: 'server' as const, accountId, id })));
}

/** How many more TB the rest of the balance pays. It takes their price from that rest. */
function payable({ accountId, begunTb, chargedTb, tbMicros }: Due, left: Map<string, bigint>): number {
  if (!tbMicros) return 0;
  const rest = left.get(accountId) ?? 0n;
  const more = Math.max(0, Math.min(begunTb - chargedTb, Number(rest / tbMicros)));
  left.set(accountId, rest - tbMicros * BigInt(more));
  return more;
}

const postings = ({ accountId, orderNumber, serviceCode, month, chargedTb, tbMicros }: Due, paidTb: number) =>
  Array.from({ length: paidTb - chargedTb }, (_, more) => ({
    accountId,
    kind: 'traffic' as const,
    debit: available(accountId),
    credit: REVENUE,
    amountMicros: tbMicros!,
    externalKey: `traffic:${orderNumber}:${month}:${chargedTb + more + 1}`,
    orderNumber,
    serviceCode,
    description: `TB ${chargedTb + more + 1} above the traffic of ${serviceCode} in ${month}`,
  }));

function happenings(one: Due & { paidTb: number }) {
  const { accountId, orderNumber: subject, usedBytes, percent, warnedPercent, chargedTb, paidTb, tbMicros } = one;
  const about = { actor: SYSTEM, accountId, subject };
  const usedGb = Number(usedBytes) / 1e9;
  const amountUsd = usdFromMicros((tbMicros ?? 0n) * BigInt(paidTb - chargedTb));
  return [
    ...(percent > warnedPercent
      ? [{ ...about, type: 'server.traffic_warned' as const, data: { percent, usedGb } }]
      : []),
    ...(paidTb > chargedTb ? [{ ...about, type: 'server.traffic_charged' as const, data: { amountUsd, usedGb } }] : []),
  ];
}
