/** Payouts whose transactions the chain shows. */
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { exportPayouts, importSent } from '../../../provisioning/payments/wallet/payouts.ts';
import { finishShown } from '../../../provisioning/payments/wallet/shown.ts';
import { refundInCoin } from '../../../resolvers/payments/payouts.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open } = await openSyncedShop();
const { db } = shop;
const TEN = 10_000_000n;

/** Exports payouts of ten dollars each to these addresses. @returns their ids */
async function exported(...addresses: string[]): Promise<string[]> {
  const [context, { walletAddress, accountId }] = await open();
  chain.pay(walletAddress!, HALF);
  for (const blocks of [2, 100]) {
    chain.mine(blocks);
    await sync();
  }
  const ids = [];
  for (const address of addresses) {
    const given = { accountId, coin: 'TST', amountUsd: TEN, address, reason: 'She leaves' };
    ids.push((await refundInCoin(context, { ...given, key: `${accountId} ${ids.length}` })).id);
  }
  await exportPayouts(db, SYSTEM);
  return ids;
}
const send = (ids: readonly string[], txId: string) =>
  importSent(
    db,
    ids.map((id) => ({ id, txId })),
    SYSTEM,
  );
/** Lets the chain bury all blocks. @returns the outcomes of these payouts */
async function settle(...ids: string[]) {
  chain.mine(101);
  const asked = await finishShown(db, [driver], SYSTEM, new AbortController().signal);
  expect((await proveBooks(db)).firstFault).toBeNull();
  return ids.map((id) => asked.find(({ payout }) => payout.id === id)?.shown);
}

describe('Payouts of one transaction to one address', () => {
  it('are final when one output pays them together', async () => {
    const ids = await exported('together', 'together', 'elsewhere');
    const { txId } = chain.pay('together', 2n * TEN);
    chain.pay('elsewhere', TEN, { txId });
    await send(ids, txId);
    expect(await settle(...ids)).toEqual(['FINAL', 'FINAL', 'FINAL']);
  });

  it('are final when each has an output', async () => {
    const ids = await exported('twice', 'twice');
    const { txId } = chain.pay('twice', TEN);
    chain.pay('twice', TEN, { txId });
    await send(ids, txId);
    expect(await settle(...ids)).toEqual(['FINAL', 'FINAL']);
  });

  it('are wrong when it pays one of them only, until the operator names the transactions of both', async () => {
    const [one, other] = (await exported('once', 'once')) as [string, string];
    const { txId } = chain.pay('once', TEN);
    await send([one, other], txId);
    expect(await settle(one, other)).toEqual(['WRONG', 'WRONG']);
    await send([other], chain.pay('once', TEN).txId);
    expect(await settle(one, other)).toEqual(['FINAL', 'FINAL']);
  });

  it('are wrong when an older payout has its coins', async () => {
    const [old, late] = (await exported('again', 'again')) as [string, string];
    const { txId } = chain.pay('again', TEN);
    await send([old], txId);
    expect(await settle(old)).toEqual(['FINAL']);
    await send([late], txId);
    expect(await settle(late)).toEqual(['WRONG']);
  });
});
