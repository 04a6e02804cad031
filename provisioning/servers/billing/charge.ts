/** Charges a month of servers: which of them can be paid for, and the transfers, times, events and audit entries. */

import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { recordAll } from '../../../entities/history/record.ts';
import { available, postAll, REVENUE } from '../../../entities/payments/ledger.ts';
import type { Server } from '../../../entities/servers/server.ts';

type Due = Pick<Server, 'paidUntil' | 'orderNumber'>;
/** The order in which servers are paid for. */
export const byDueTime = (a: Due, b: Due): number =>
  a.paidUntil!.getTime() - b.paidUntil!.getTime() || byOrderNumber(a, b);
/** The order in which servers and their tasks are locked. */
export const byOrderNumber = (a: Pick<Server, 'orderNumber'>, b: Pick<Server, 'orderNumber'>): number =>
  a.orderNumber < b.orderNumber ? -1 : 1;

/**
 * Which servers are to renew themselves and can be paid for, each account's in the given order; one that is too dear
 * leaves the money for those after it. The balances stay locked until the transaction ends, so the choice holds.
 */
export async function chooseAffordable(
  tx: Transaction,
  servers: Server[],
): Promise<{ affordable: Server[]; others: Server[] }> {
  const balances = await tx.query<{ accountId: string; micros: bigint }>(
    `select account_id, available_micros as micros from balance
      where account_id = any($1) order by account_id for update`,
    [[...new Set(servers.map(({ accountId }) => accountId))]],
  );
  const left = new Map(balances.map(({ accountId, micros }) => [accountId, micros]));
  const affordable: Server[] = [];
  const others: Server[] = [];
  for (const server of servers) {
    const { accountId, autoRenew, priceMonthMicros } = server;
    const micros = left.get(accountId) ?? 0n;
    if (autoRenew && priceMonthMicros <= micros) {
      left.set(accountId, micros - priceMonthMicros);
      affordable.push(server);
    } else others.push(server);
  }
  return { affordable, others };
}

interface Renewal {
  /** As it was before: its `paidUntil` is the time that ended. */
  server: Server;
  periodFrom: Date;
  periodTo: Date;
}

/**
 * Charges a month for each server, which no credential causes and no API key's spending limit counts, and says until when it is paid. The key of each transfer names the server and the time
 * that ended, so a period is charged once.
 */
export async function chargeRenewals(tx: Transaction, renewals: Renewal[]): Promise<void> {
  if (!renewals.length) return;
  await postAll(
    tx,
    renewals.map(({ server, periodFrom, periodTo }) => ({
      accountId: server.accountId,
      kind: 'renewal' as const,
      debit: available(server.accountId),
      credit: REVENUE,
      amountMicros: server.priceMonthMicros,
      externalKey: `renewal:${server.orderNumber}:${server.paidUntil!.toISOString()}`,
      orderNumber: server.orderNumber,
      serviceCode: server.serviceCode,
      description: `Renewal of ${server.serviceCode}`,
      periodFrom,
      periodTo,
    })),
  );
  await tx.query(
    `update server set paid_until = given.paid_until, updated_at = now()
      from unnest($1::text[], $2::timestamptz[]) as given(order_number, paid_until)
      where server.order_number = given.order_number`,
    [renewals.map(({ server }) => server.orderNumber), renewals.map(({ periodTo }) => periodTo)],
  );
  await recordAll(
    tx,
    renewals.map(({ server: { accountId, orderNumber }, periodTo }) => ({
      type: 'server.renewed' as const,
      actor: SYSTEM,
      accountId,
      subject: orderNumber,
      data: { paidUntil: periodTo.toISOString() },
    })),
  );
  tx.changed(
    ...renewals.map(({ server }) => ({
      kind: 'server' as const,
      accountId: server.accountId,
      id: server.orderNumber,
    })),
  );
}
