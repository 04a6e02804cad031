/** Top-ups on a real chain of the Bitcoin family, through the whole service. */
import { HDKey } from '@scure/bip32';
import { beforeAll, describe, expect, it } from 'vitest';
import { CHAINS } from '../../../../provisioning/payments/drivers/utxo/chains.ts';
import { UtxoReader } from '../../../../provisioning/payments/drivers/utxo/reader.ts';
import { atEnd } from '../../../setup/end.ts';
import type { TestAccount } from '../../../setup/freehold.ts';
import { finderOf } from '../../chains/chain.ts';
import { type GatewayWorld, openGatewayWorld, type TopUpBody } from '../gateway-world.ts';
import { type Litecoind, NO_LITECOIND, startLitecoind } from './litecoind.ts';

/** Versions of extended keys on test networks (BIP 32). */
const TEST_VERSIONS = { public: 0x043587cf, private: 0x04358394 };
/** The key of the operator, which the service never sees. */
const MASTER = HDKey.fromMasterSeed(Buffer.alloc(32, 7), TEST_VERSIONS);
const ACCOUNT = MASTER.derive("m/84'/1'/0'");
const { signal } = new AbortController();
const readerOf = ({ url }: Litecoind) =>
  new UtxoReader({
    ...{ network: 'litecoin-regtest', chain: CHAINS['litecoin-regtest']!, url },
    credentials: () => 'till:secret',
  });

describe.skipIf(NO_LITECOIND)('On a chain of the Bitcoin family', () => {
  let node: Litecoind;
  let world: GatewayWorld;

  beforeAll(async () => {
    node = await startLitecoind();
    atEnd(() => node.stop());
    const { url, cookieFile } = node;
    const gateways = [
      {
        ...{ driver: 'utxo', chain: 'litecoin-regtest', url, cookieFile, xpub: ACCOUNT.publicExtendedKey },
        ...{ confirmations: 2, pollSeconds: 0.05 },
      },
    ];
    world = await openGatewayWorld(gateways, { LTC: 80 });
  });

  const fresh = async (): Promise<[TestAccount, TopUpBody]> => {
    const account = await world.newAccount();
    return [account, await world.open(account, 40, 'LTC')];
  };

  it('a top-up has its own address under the key of the operator, and a URI (BIP 84, BIP 21)', async () => {
    const [, topUp] = await fresh();
    const [deposit] = await world.db.query<{ next: number }>('select next from deposit');
    const key = ACCOUNT.derive(`m/0/${deposit!.next - 1}`).publicKey!;
    const descriptor = await node.rpc<{ descriptor: string }>(
      'getdescriptorinfo',
      `wpkh(${Buffer.from(key).toString('hex')})`,
    );
    expect(await node.rpc('deriveaddresses', descriptor.descriptor)).toEqual([topUp.wallet_address]);
    expect(topUp).toMatchObject({ network: 'litecoin-regtest', amount_crypto: '0.5', confirmations_required: 2 });
    expect(topUp.payment_uri).toBe(`litecoin:${topUp.wallet_address}?amount=0.5`);
  });

  it('a payment is shown once it is announced, and credited after its confirmations', async () => {
    const [account, topUp] = await fresh();
    const txId = await node.pay(topUp.wallet_address, '0.5');
    await world.becomes(account, topUp, {
      status: 'confirming',
      confirmations: 0,
      received_crypto: '0.5',
      tx_ids: [txId],
    });
    await node.mine(1);
    await world.becomes(account, topUp, { status: 'confirming', confirmations: 1 });
    expect(await account.balance()).toBe(0);
    await node.mine(1);
    await world.becomes(account, topUp, { status: 'confirmed', payment_exception: null, credited_usd: 40 });
    expect(await account.balance()).toBe(40);
  });

  it('tells the block of a transaction, if its node has an index', async () => {
    const [, topUp] = await fresh();
    const txId = await node.pay(topUp.wallet_address, '0.5');
    const reader = readerOf(node);
    expect(await reader.heightOf(txId, signal)).toBeNull();
    await node.mine(1);
    expect(await reader.heightOf(txId, signal)).toBe((await reader.head(signal)).height);
    expect(await reader.heightOf('0'.repeat(64), signal)).toBeUndefined();
  });

  it('tells nothing about a mined transaction, if its node has no index', async () => {
    const plain = await startLitecoind({ hasIndex: false });
    try {
      const reader = readerOf(plain);
      const txId = await plain.pay(await plain.rpc('getnewaddress'), '0.5');
      expect(await reader.heightOf(txId, signal)).toBeNull();
      await plain.mine(1);
      await expect(reader.heightOf(txId, signal)).rejects.toThrow('txindex=1');
    } finally {
      await plain.stop();
    }
  });

  it('a payment in a reverted block waits again, and is credited once', async () => {
    const [account, topUp] = await fresh();
    await node.pay(topUp.wallet_address, '0.5');
    for (let round = 0; round < 3; round++) {
      const [block] = await node.mine(1);
      await world.becomes(account, topUp, { status: 'confirming', confirmations: 1 });
      await node.rpc('invalidateblock', block);
      // A head above the known block: one of the same height may just be late.
      for (let made = 0; made < 2; made++) await node.rpc('generateblock', await node.rpc('getnewaddress'), []);
      await world.becomes(account, topUp, { status: 'confirming', confirmations: 0, received_crypto: '0.5' });
      expect(await account.balance()).toBe(0);
    }
    await node.mine(3);
    await world.becomes(account, topUp, { status: 'confirmed', payment_exception: null });
    expect(await account.balance()).toBe(40);
  });

  it('a payment that another replaces is counted once (BIP 125)', async () => {
    const [account, topUp] = await fresh();
    const txId = await node.rpc<string>('sendtoaddress', topUp.wallet_address, '0.5', '', '', false, true);
    await world.becomes(account, topUp, { tx_ids: [txId], received_crypto: '0.5' });
    const { txid } = await node.rpc<{ txid: string }>('bumpfee', txId, { fee_rate: 100 });
    await world.becomes(account, topUp, { tx_ids: [txid], received_crypto: '0.5' });
    await node.mine(2);
    await world.becomes(account, topUp, { status: 'confirmed', received_crypto: '0.5', payment_exception: null });
  });

  it('a payment that is late, partial or too large is credited in full', async () => {
    const [account, topUp] = await fresh();
    await world.expire(topUp);
    await world.becomes(account, topUp, { status: 'expired' });
    for (const amount of ['0.25', '0.5']) await node.pay(topUp.wallet_address, amount);
    await node.mine(2);
    await world.becomes(account, topUp, { status: 'confirmed', payment_exception: 'late', credited_usd: 60 });
  });

  it('a node without full blocks, such as that of Dogecoin, is asked for each transaction', async () => {
    const [, { wallet_address: address }] = await fresh();
    await node.pay(address, '0.12345678');
    const [hash] = await node.mine(1);
    const readers = [true, false].map(
      (fullBlocks) =>
        new UtxoReader({
          ...{ network: 'litecoin-regtest', url: node.url, credentials: () => 'till:secret' },
          chain: { ...CHAINS['litecoin-regtest']!, fullBlocks },
        }),
    );
    const { signal } = new AbortController();
    const { height } = await readers[0]!.head(signal);
    const [whole, single] = await Promise.all(
      readers.map((reader) => reader.block(height, finderOf([address]), signal)),
    );
    expect(single).toEqual(whole);
    expect(whole).toMatchObject({ hash, payments: [{ coin: 'LTC', address, units: 12_345_678n }] });
  });

  it('a transaction of MWEB in the mempool delays no payment', async () => {
    // The first block that may have one is number 432. The wallet spends its coins only some blocks later.
    await node.mine(Math.max(0, 431 - (await node.rpc<number>('getblockcount'))));
    await node.pay(await node.rpc('getnewaddress', '', 'mweb'), '10');
    await node.mine(6);
    const [account, topUp] = await fresh();
    await node.pay(topUp.wallet_address, '0.5');
    await node.mine(2);
    const txId = await node.pay(await node.rpc('getnewaddress', '', 'mweb'), '0.01');
    const { vout } = await node.rpc<{ vout: object[] }>('getrawtransaction', txId, true);
    expect(vout.every((output) => !('scriptPubKey' in output))).toBe(true);
    await world.becomes(account, topUp, { status: 'confirmed', credited_usd: 40 });
    expect(await node.rpc('getrawmempool')).toContain(txId);
  });

  it('a node of another chain is not trusted', async () => {
    const { url } = node;
    const chain = CHAINS['bitcoin-regtest']!;
    const reader = new UtxoReader({ network: 'bitcoin', chain, url, credentials: () => 'till:secret' });
    await expect(reader.head(new AbortController().signal)).rejects.toThrow(
      'The node belongs to another chain than bitcoin.',
    );
    const wrong = new UtxoReader({ network: 'x', chain, url, credentials: () => 'till:wrong' });
    await expect(wrong.head(new AbortController().signal)).rejects.toThrow('status 401');
  });
});
