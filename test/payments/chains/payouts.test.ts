/** Payouts whose transactions the chain shows. */
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { noteRestore } from '../../../provisioning/archives/restored.ts';
import { importSent } from '../../../provisioning/payments/wallet/import.ts';
import { cancelPayout, exportPayouts } from '../../../provisioning/payments/wallet/payouts.ts';
import { askReplaced, finishShown, lineOfReplaced } from '../../../provisioning/payments/wallet/shown.ts';
import { refundInCoin } from '../../../resolvers/payments/payouts.ts';
import { contextOf } from '../../setup/shop.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open } = await openSyncedShop();
const { db } = shop;
const TEN = 10_000_000n;

/** Requests payouts of ten dollars each to these addresses. @returns their ids */
async function requested(...addresses: string[]): Promise<string[]> {
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
  return ids;
}
async function exported(...addresses: string[]): Promise<string[]> {
  const ids = await requested(...addresses);
  await exportPayouts(db, SYSTEM);
  return ids;
}
const { signal } = new AbortController();
const send = (ids: readonly string[], txId: string) =>
  importSent(
    db,
    ids.map((id) => ({ id, txId })),
    SYSTEM,
  );
/** Keeps another transaction of payouts, which the operator says never pays. */
const replace = (ids: readonly string[], txId: string, drivers = [driver]) =>
  importSent(
    db,
    ids.map((id) => ({ id, txId })),
    SYSTEM,
    { drivers, signal },
  );
const replacedOf = async (id: string) =>
  (await askReplaced(db, [driver], signal)).filter(({ payout }) => payout.id === id).map(({ replaced }) => replaced);
/** Lets the chain bury all blocks. @returns the outcomes of these payouts */
async function settle(...ids: string[]) {
  chain.mine(101);
  const asked = await finishShown(db, [driver], SYSTEM, signal);
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
    await replace([other], chain.pay('once', TEN).txId);
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

describe('The address of a payout', () => {
  it('is spelled as on its chain, and is refused if the chain has no such address', async ({ onTestFinished }) => {
    Object.assign(driver, { spell: (given: string) => (given === 'typo' ? undefined : given.toLowerCase()) });
    onTestFinished(() => void Reflect.deleteProperty(driver, 'spell'));
    const [id] = (await exported('FROM A QR CODE')) as [string];
    await send([id], chain.pay('from a qr code', TEN).txId);
    expect(await settle(id)).toEqual(['FINAL']);
    await expect(exported('typo')).rejects.toThrow('address is no address of testnet');
  });
});

describe('A payout that was exported', () => {
  it('is in no later list, so that two lists before an import do not pay it twice', async () => {
    const [monday] = (await exported('monday')) as [string];
    const [tuesday] = (await exported('tuesday')) as [string];
    expect(await exportPayouts(db, SYSTEM)).toEqual([]);
    const again = (await exportPayouts(db, SYSTEM, true)).filter(({ id }) => [monday, tuesday].includes(id));
    expect(again.map(({ address, exportedAt }) => [address, exportedAt instanceof Date])).toEqual([
      ['monday', true],
      ['tuesday', true],
    ]);
  });

  it('is in one of two lists that the operator exports at once', async () => {
    const [context, { walletAddress, accountId }] = await open();
    chain.pay(walletAddress!, HALF);
    for (const blocks of [2, 100]) {
      chain.mine(blocks);
      await sync();
    }
    const given = { accountId, coin: 'TST', amountUsd: TEN, address: 'at once', reason: 'She leaves', key: 'at once' };
    const { id } = await refundInCoin(context, given);
    const lists = await Promise.all([exportPayouts(db, SYSTEM), exportPayouts(db, SYSTEM)]);
    expect(lists.flat().map((one) => one.id)).toEqual([id]);
  });
});

describe('A payout that was cancelled after its export, and sent all the same', () => {
  const cancel = (id: string) => db.transaction((tx) => cancelPayout(tx, id, 'She stays', SYSTEM));
  const balanceOf = async (id: string) => {
    const [row] = await db.query<{ available: bigint; owed: bigint }>(
      `select available_micros as available, owed_micros as owed
        from balance join payout using (account_id) where payout.id = $1`,
      [id],
    );
    return row!;
  };

  it('is booked by its import, together with others, and its account pays it again', async () => {
    const ids = await exported('sent', 'sent', 'sent');
    const before = await balanceOf(ids[0]!);
    await cancel(ids[0]!);
    await cancel(ids[2]!);
    await send(ids, chain.pay('sent', 3n * TEN).txId);
    expect(await balanceOf(ids[0]!)).toEqual(before);
    expect(await settle(...ids)).toEqual(['FINAL', 'FINAL', 'FINAL']);
  });

  it('makes a debt if the account has spent the money meanwhile', async () => {
    const [id] = (await exported('spent')) as [string];
    await cancel(id);
    const { available } = await balanceOf(id);
    const [row] = await db.query<{ accountId: string }>('select account_id from payout where id = $1', [id]);
    const { accountId } = row!;
    const others = { accountId, coin: 'TST', amountUsd: available, address: 'other', reason: 'All', key: 'all' };
    const second = await refundInCoin(contextOf(shop, accountId), others);
    await exportPayouts(db, SYSTEM);
    await send([id], chain.pay('spent', TEN).txId);
    await send([second.id], chain.pay('other', available).txId);
    expect(await balanceOf(id)).toEqual({ available: 0n, owed: TEN });
  });

  it('is refused if no list to sign had it', async () => {
    const [context, { walletAddress, accountId }] = await open();
    chain.pay(walletAddress!, HALF);
    for (const blocks of [2, 100]) {
      chain.mine(blocks);
      await sync();
    }
    const given = { accountId, coin: 'TST', amountUsd: TEN, address: 'never', reason: 'She leaves', key: 'never' };
    const { id } = await refundInCoin(context, given);
    await cancel(id);
    await expect(send([id], 'never')).rejects.toThrow('No list to sign had the payout');
  });
});

describe('A second transaction of a payout', () => {
  it('is refused without the word of the operator, and while a node shows that the first one pays', async () => {
    const [id] = (await exported('second')) as [string];
    const { txId } = chain.pay('second', TEN);
    await send([id], txId);
    await send([id], txId.toUpperCase());
    await expect(send([id], 'another')).rejects.toThrow('import with --replace');
    await expect(replace([id], 'another')).rejects.toThrow('A node shows the first transaction');
    chain.mine(1);
    await expect(replace([id], 'another')).rejects.toThrow('A node shows the first transaction');
    expect(await settle(id)).toEqual(['FINAL']);
    await expect(replace([id], 'another')).rejects.toThrow('is FINAL and cannot become BROADCAST');
  });

  it('is refused in one list with the first, and while no node answers', async () => {
    const [id] = (await exported('silent')) as [string];
    const two = ['one', 'two'].map((txId) => ({ id, txId }));
    await expect(importSent(db, two, SYSTEM)).rejects.toThrow('names two transactions');
    await send([id], 'one');
    const { heightOf } = chain;
    chain.heightOf = () => Promise.reject(new Error('The node is off.'));
    await expect(replace([id], 'two')).rejects.toThrow('The node is off.');
    expect(await settle(id)).toEqual(['SILENT']);
    chain.heightOf = heightOf;
    await replace([id], chain.pay('silent', TEN).txId);
    expect([await settle(id), await replacedOf(id)]).toEqual([['FINAL'], ['GONE']]);
    chain.heightOf = () => Promise.reject(new Error('The node is off.'));
    const line = (await askReplaced(db, [driver], signal)).map(lineOfReplaced).find((one) => one.includes(id));
    expect(line).toMatch(/^SILENT .* No node answered about the first one\. The node is off\.$/);
    chain.heightOf = heightOf;
  });

  it('is named when the chain pays by the first one after all', async () => {
    const [id] = (await exported('after all')) as [string];
    const { txId } = chain.pay('after all', TEN);
    chain.pool.pop();
    await send([id], txId);
    await replace([id], chain.pay('after all', TEN).txId);
    expect([await settle(id), await replacedOf(id)]).toEqual([['FINAL'], ['GONE']]);
    chain.pay('after all', TEN, { txId });
    expect(await replacedOf(id)).toEqual(['ANNOUNCED']);
    chain.mine(1);
    expect(await replacedOf(id)).toEqual(['TWICE']);
  });

  it('leaves the first one to the operator when a block has it, and shows no coins to the address', async () => {
    const [id] = (await exported('by a contract')) as [string];
    const { txId } = chain.pay('a contract', TEN);
    chain.mine(1);
    await send([id], txId);
    expect(await settle(id)).toEqual(['WRONG']);
    await replace([id], 'unsent');
    const line = (await askReplaced(db, [driver], signal)).map(lineOfReplaced).find((one) => one.includes(id));
    expect(line).toContain('A contract may have sent them. Look at the address on the chain.');
    await replace([id], txId);
    expect(await replacedOf(id)).toEqual(['GONE']);
    await replace([id], chain.pay('by a contract', TEN).txId);
    expect([await settle(id), await replacedOf(id)]).toEqual([['FINAL'], ['UNKNOWN', 'GONE']]);
  });

  it('replaces no first one that pays some of its payouts, for more of them than it leaves out', async () => {
    const [one, other] = (await exported('some', 'some')) as [string, string];
    const { txId } = chain.pay('some', TEN);
    chain.mine(1);
    await send([one, other], txId);
    await expect(replace([one, other], 'another')).rejects.toThrow('A node shows the first transaction');
    await replace([other], chain.pay('some', TEN).txId);
    expect(await settle(one, other)).toEqual(['FINAL', 'FINAL']);
    expect(await replacedOf(other)).toEqual(['GONE']);
  });
});

it('A payout counts as exported after a restore, because the lost time may have paid it', async () => {
  const ids = await requested('lost');
  const [last] = await db.query<{ at: Date }>('select max(created_at) as at from event');
  expect((await noteRestore(db, SYSTEM)).payouts).toEqual(ids);
  const told = await db.query(`select data from event where type = 'backup.restored'`);
  expect(told).toEqual([{ data: { since: last!.at.toISOString() } }]);
  expect(await exportPayouts(db, SYSTEM)).toEqual([]);
});
