/** Coins that the operator moved out of a gateway, or wrote off: the books and the chain agree about them. */
import { describe, expect, it } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import { reconcile, verdictOf } from '../../../provisioning/payments/wallet/reconcile.ts';
import type { Context } from '../../../resolvers/context.ts';
import { giveBack, writeOff } from '../../../resolvers/payments/payments.ts';
import { move, returnInCoin } from '../../../resolvers/payments/payouts.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open } = await openSyncedShop();
const { db } = shop;
const reason = 'Wrong coin';
// 100 units are a dollar. The service writes off less without a decision.
driver.coinList[1]!.fixedRateMicros = 1_000_000_000_000n;

/** The units of OTHER that left the deposit addresses. */
let swept = 0n;
const node = {
  isSilent: false,
  async balances() {
    if (node.isSilent) throw new Error('The node is off.');
    const inCoin = (code: string) =>
      chain.blocks
        .flatMap(({ payments }) => payments)
        .filter(({ coin, address }) => coin === code && address.startsWith('address-'))
        .reduce((sum, { units }) => sum + units, 0n);
    return new Map([
      ['OTHER', inCoin('OTHER') - swept],
      ['TST', inCoin('TST')],
    ]);
  },
};
Object.assign(chain, { balances: node.balances });
const verdict = async (coin = 'OTHER') => {
  const compared = await reconcile(db, { payments: [driver] }, new AbortController().signal);
  return verdictOf(compared.find((one) => one.coin === coin)!);
};
const faults = async () => (await proveBooks(db)).faults.map(({ detail, rows }) => `${detail} ${rows}`);

/** A final payment in another coin than that of its top-up. */
async function unmatched(units: bigint): Promise<[Context, Payment]> {
  const [context, { walletAddress }] = await open();
  const { txId } = chain.pay(walletAddress!, units, { coin: 'OTHER' });
  for (const blocks of [2, 101]) {
    chain.mine(blocks);
    await sync();
  }
  const [payment] = await db.query<Payment>('select * from payment where tx_id = $1', [txId]);
  return [context, payment!];
}
let transactions = 0;
const movement = (context: Context, units: bigint, source = 'gateway:testnet', target = 'wallet:testnet') =>
  move(context, {
    ...{ source, target, coin: 'OTHER', units: String(units), txId: `moved ${transactions++}` },
    amountMicros: 1_000_000n,
  });
/** Sweeps coins of OTHER into the wallet. */
const sweep = async (context: Context, units: bigint) => {
  await movement(context, units);
  swept += units;
};

describe('A payment whose coins were swept', () => {
  it('goes back out of the wallet, and not out of the empty gateway', async () => {
    const [context, { id, units }] = await unmatched(5_000n);
    await sweep(context, 5_000n);
    const given = { paymentId: id, address: 'elsewhere', reason };
    await expect(returnInCoin(context, { ...given, key: 'gateway' })).rejects.toThrow('fewer final coins');
    await expect(giveBack(context, id, { returnTxId: 'by hand', reason })).rejects.toThrow('with a wallet as source');
    expect(await returnInCoin(context, { ...given, key: 'wallet', source: 'wallet:testnet' })).toMatchObject({ units });
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
  });

  it('goes back by hand when the coins of another payment are there', async () => {
    const [context, { id }] = await unmatched(3_000n);
    await unmatched(4_000n);
    await sweep(context, 4_000n);
    await giveBack(context, id, { returnTxId: 'other coins', reason });
    swept += 3_000n;
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
  });
});

describe('A movement', () => {
  it('takes at most the coins of the gateway in the books, less those of open payouts', async () => {
    const [context, { id }] = await unmatched(6_000n);
    const [, { units }] = await unmatched(1_000n);
    await returnInCoin(context, { paymentId: id, key: 'open', address: 'elsewhere', reason });
    await expect(movement(context, 10_000_000n)).rejects.toThrow('gateway:testnet has fewer units of OTHER');
    await expect(movement(context, BigInt(units) + 1n)).rejects.toThrow('less those of open payouts');
    await sweep(context, BigInt(units));
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
  });

  it('may take coins that are not final', async () => {
    const [context, { walletAddress }] = await open();
    chain.pay(walletAddress!, 2_000n, { coin: 'OTHER' });
    chain.mine(2);
    await sync();
    await sweep(context, 2_000n);
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
  });

  it('is recorded once for a transaction in upper and lower case, with and without 0x', async () => {
    const [context] = await unmatched(300n);
    const given = {
      source: 'gateway:testnet',
      target: 'wallet:testnet',
      coin: 'OTHER',
      units: '300',
      amountMicros: null,
    };
    const { id } = await move(context, { ...given, txId: '0xC0FFEE' });
    expect(await move(context, { ...given, txId: '0xc0ffee' })).toMatchObject({ id, txId: '0xc0ffee' });
    expect((await move(context, { ...given, txId: 'C0FFEE' })).id).toBe(id);
    swept += 300n;
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
  });

  it('is refused from and to a gateway that does not exist', async () => {
    const [context] = await unmatched(100n);
    await expect(movement(context, 1n, 'gateway:tesnet')).rejects.toThrow('gateway:tesnet has fewer units');
    await expect(movement(context, 1n, 'wallet:testnet', 'gateway:tesnet')).rejects.toThrow('no ledger account');
    await sweep(context, 100n);
  });
});

describe('An unmatched payment that its chain has removed', () => {
  it('has no coins in its gateway until the chain has it again', async () => {
    const [context, { walletAddress }] = await open();
    chain.pay(walletAddress!, 800n, { coin: 'OTHER' });
    chain.mine(2);
    await sync();
    const lost = chain.blocks.slice(-2).flatMap(({ payments }) => payments);
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await sync();
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
    await expect(movement(context, 800n)).rejects.toThrow('gateway:testnet has fewer units of OTHER');
    chain.pool = lost;
    chain.mine(1);
    expect(await verdict()).toBe('PENDING');
    await sync();
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
    await sweep(context, 800n);
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
  });
});

describe('The comparison with the chain', () => {
  it('is right after the operator wrote off an unmatched payment, whose coins may be swept', async () => {
    const [context, { id }] = await unmatched(900n);
    await writeOff(context, id, 'Dust');
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
    await sweep(context, 900n);
    expect([await verdict(), await faults()]).toEqual(['RIGHT', []]);
  });

  it('is right after the operator wrote off a payment that the chain has reversed', async () => {
    const [context, { walletAddress }] = await open();
    const { txId } = chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    const lost = structuredClone(chain.blocks.slice(-2)).flatMap(({ payments }) => payments);
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await sync();
    const [reversed] = await db.query<Payment>('select * from payment where tx_id = $1', [txId]);
    await writeOff(context, reversed!.id, 'Gone');
    expect([await verdict('TST'), await faults()]).toEqual(['RIGHT', []]);
    chain.pool = lost;
    chain.mine(1);
    await sync();
    expect([await verdict('TST'), await faults()]).toEqual(['PENDING', []]);
    chain.mine(2);
    await sync();
    expect([await verdict('TST'), await faults()]).toEqual(['RIGHT', []]);
  });

  it('is right although customers pay meanwhile', async () => {
    const [, { walletAddress }] = await open();
    const { balances } = node;
    const atOnce = async (work: () => Promise<unknown>) => {
      Object.assign(chain, {
        balances: async () => {
          Object.assign(chain, { balances });
          const read = await balances();
          await work();
          return read;
        },
      });
      return verdict('TST');
    };
    const pay = async () => {
      chain.pay(walletAddress!, HALF);
      chain.mine(2);
      await sync();
    };
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    expect(await atOnce(sync)).toBe('RIGHT');
    expect(await atOnce(pay)).toBe('PENDING');
    expect(await verdict('TST')).toBe('RIGHT');
  });

  it('is wrong if coins are missing', async () => {
    swept += 1n;
    expect(await verdict()).toBe('WRONG');
    swept -= 1n;
    expect(await verdict()).toBe('RIGHT');
  });

  it('has a surplus if coins are there that no driver saw, which is no loss', async () => {
    swept -= 1n;
    expect(await verdict()).toBe('SURPLUS');
    swept += 1n;
    expect(await verdict()).toBe('RIGHT');
  });

  it('names a node that does not answer, and a driver that cannot tell', async () => {
    node.isSilent = true;
    expect(await verdict()).toBe('SILENT');
    node.isSilent = false;
    Object.assign(chain, { balances: undefined });
    expect(await verdict()).toBe('UNKNOWN');
    Object.assign(chain, { balances: node.balances });
    expect(await verdict()).toBe('RIGHT');
  });
});

describe('The proof of the books', () => {
  it('names a gateway that a movement of an earlier version overdrew', async () => {
    await db.query(
      `insert into movement (id, source, target, coin, units, amount_micros, tx_id)
        values ('mov_wrong', 'gateway:tesnet', 'wallet:testnet', 'OTHER', '7', 0, 'wrong')`,
    );
    expect(await faults()).toEqual([expect.stringContaining('gateway:tesnet OTHER')]);
  });
});
