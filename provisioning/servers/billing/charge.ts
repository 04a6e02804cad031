/** Charges servers for a month: the choice of those that can be paid for, their transfers, paid times and events. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { recordAll } from '../../../entities/history/record.ts';
import { available, lockAccount, postAll, REVENUE } from '../../../entities/payments/ledger.ts';
import {
  EXTEND_PAID_TIME,
  FIND_SUSPENDED_ACCOUNTS,
  type PricedServer,
  START_PRICE,
} from '../../../entities/servers/renewal.ts';
import type { Server } from '../../../entities/servers/server.ts';

type Due = Pick<Server, 'paidUntil' | 'orderNumber'>;
/** The order in which an account pays for its servers. */
export const byDueTime = (a: Due, b: Due): number =>
  a.paidUntil!.getTime() - b.paidUntil!.getTime() || byOrderNumber(a, b);
/** The order in which transactions lock servers and their tasks. */
export const byOrderNumber = (a: Pick<Server, 'orderNumber'>, b: Pick<Server, 'orderNumber'>): number =>
  a.orderNumber < b.orderNumber ? -1 : 1;

/**
 * Chooses the servers with automatic renewal that their accounts can pay for, in the given order. A server that is too
 * expensive leaves the money for later ones. A suspended account pays for none. The balances stay locked, and a suspension
 * waits for them, so the choice holds until the transaction ends. The announced prices of the chosen ones start.
 * @returns also the ids of the suspended accounts
 */
export async function chooseAffordable(
  tx: Transaction,
  servers: PricedServer[],
): Promise<{ affordable: Server[]; others: Server[]; suspended: Set<string> }> {
  const ids = [...new Set(servers.map(({ accountId }) => accountId))];
  const balances = await lockAccount(tx, ...ids);
  const suspended = new Set((await FIND_SUSPENDED_ACCOUNTS.all(tx, [ids])).map(({ accountId }) => accountId));
  const left = new Map(balances.map(({ accountId, availableMicros }) => [accountId, availableMicros]));
  const affordable: PricedServer[] = [];
  const others: Server[] = [];
  for (const server of servers) {
    const { accountId, autoRenew, monthMicros } = server;
    const availableMicros = left.get(accountId) ?? 0n;
    if (autoRenew && monthMicros <= availableMicros && !suspended.has(accountId)) {
      left.set(accountId, availableMicros - monthMicros);
      affordable.push(server);
    } else others.push(server);
  }
  return { affordable: await withStartedPrices(tx, affordable), others, suspended };
}

async function withStartedPrices(tx: Transaction, servers: PricedServer[]): Promise<Server[]> {
  const announced = servers.filter(({ priceMonthMicros, monthMicros }) => priceMonthMicros !== monthMicros);
  if (announced.length) await START_PRICE.all(tx, [announced.map(({ orderNumber }) => orderNumber)]);
  return servers.map(({ monthMicros, ...server }) =>
    server.priceMonthMicros === monthMicros
      ? server
      : { ...server, priceMonthMicros: monthMicros, nextPriceMicros: null, nextPriceFrom: null },
  );
}

interface Renewal {
  /** The server before the renewal: its `paidUntil` is the time that ended. */
  server: Server;
  periodFrom: Date;
  periodTo: Date;
}

/**
 * Charges a month for each server, and extends its paid time. The key of each transfer names the server and the time that
 * ended, so a period is charged once. No API key's spending limit counts it.
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
  await EXTEND_PAID_TIME.all(tx, [
    renewals.map(({ server }) => server.orderNumber),
    renewals.map(({ periodTo }) => periodTo),
  ]);
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
  tx.changedAll(
    renewals.map(({ server }) => ({
      kind: 'server' as const,
      accountId: server.accountId,
      id: server.orderNumber,
    })),
  );
}
