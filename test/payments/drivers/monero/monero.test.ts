/** The Monero driver with a faulty wallet. monero.chain.ts tests it with a real wallet. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { OpenInvoice, PaymentDriver } from '../../../../provisioning/payments/drivers/driver.ts';
import { monero } from '../../../../provisioning/payments/drivers/monero/monero.ts';
import { atEnd } from '../../../setup/end.ts';
import { ADDRESS, WalletRpc } from './wallet-rpc.ts';

const LOGIN = 'user:pass:word';
let rpc: WalletRpc;
let driver: PaymentDriver;
const stops: (() => Promise<void>)[] = [];
atEnd(() => Promise.all(stops.map((stop) => stop())));
const start = async (login?: string, given = login) => {
  const started = await new WalletRpc(login).start();
  stops.push(() => started.stop());
  rpc = started;
  const end = { url: rpc.url, ...(given && { login: given }) };
  driver = monero.open({ wallet: end, daemon: end, address: ADDRESS, confirmations: 10 });
};
beforeEach(() => start());

const signal = () => AbortSignal.timeout(20_000);
const invoice = {
  ...{ orderNumber: 'TOP-0123456789', coin: 'XMR', amountCrypto: '0.3125', amountMicros: 50_000_000n },
  ...{ createdAt: new Date(), expiresAt: new Date(Date.now() + 1_800_000) },
};
const open = async (): Promise<OpenInvoice> => {
  const { walletAddress, reference = null } = await driver.open(invoice, undefined, signal());
  return { ...invoice, walletAddress, reference };
};
const transfer = (set: object) => ({
  ...{ txid: 'a'.repeat(64), address: rpc.addresses[1], amount: 312_500_000_000n, confirmations: 12 },
  ...{ double_spend_seen: false, locked: false, timestamp: 1_700_000_000, unlock_time: 0, ...set },
});

describe('A Monero wallet', () => {
  it('stores an address before the driver gives it out', async () => {
    const target = await driver.open(invoice, undefined, signal());
    expect(target).toEqual({
      walletAddress: rpc.addresses[1],
      paymentUri: `monero:${rpc.addresses[1]}?tx_amount=0.3125&tx_description=TOP-0123456789`,
      reference: '1',
    });
    expect(rpc.calls.slice(-2)).toEqual(['create_address', 'store']);
    expect(await driver.reachable!(signal())).toBe(true);
    expect(await driver.observe!(await open(), signal())).toEqual([]);
  });

  it.each<[what: string, broken: () => void]>([
    ['is closed', () => (rpc.errors.get_address = { code: -13, message: 'No wallet file' })],
    ['is another', () => (rpc.addresses[0] = `4${'C'.repeat(94)}`)],
    ['can spend', () => (rpc.canSpend = true)],
    ['does not say whether it can spend', () => (rpc.errors.query_key = { code: -1, message: 'busy' })],
    ['lacks blocks', () => (rpc.daemonHeight = 104)],
    ['has blocks that were taken back', () => (rpc.height = 104)],
    ['has a daemon that lacks blocks', () => (rpc.synchronized = false)],
    ['has a daemon without new blocks', () => rpc.newestAt.setHours(rpc.newestAt.getHours() - 2)],
    ['cannot see announced payments', () => (rpc.errors.get_transfers = { code: -38, message: 'no connection' })],
    ['cannot be reached', () => void stops.pop()!()],
  ])('is not taken for empty if it %s', async (what, broken) => {
    const opened = await open();
    broken();
    await expect(driver.observe!(opened, signal())).rejects.toThrow();
    if (what === 'cannot see announced payments') return;
    await expect(driver.open(invoice, undefined, signal())).rejects.toThrow();
    await expect(driver.reachable!(signal())).rejects.toThrow();
  });

  it('is not trusted if it does not know one of its addresses any more', async () => {
    const opened = await open();
    rpc.addresses[1] = `8${'D'.repeat(94)}`;
    await expect(driver.observe!(opened, signal())).rejects.toThrow('does not know its subaddress');
    rpc.addresses[1] = opened.walletAddress!;
    rpc.transfers = { in: [transfer({ address: `8${'D'.repeat(94)}` })] };
    await expect(driver.observe!(opened, signal())).rejects.toThrow('another address');
  });

  it('tells by one call what all subaddresses received lately', async () => {
    await Promise.all([open(), open(), open()]);
    const [, one, two, three] = rpc.addresses;
    rpc.height = 1_000;
    rpc.transfers = {
      in: [
        transfer({ address: one, txid: 'old', height: 925 }),
        transfer({ address: two, txid: 'mined', height: 990 }),
      ],
      pool: [
        transfer({ address: three, txid: 'announced', height: 0, confirmations: 0 }),
        transfer({ address: three, txid: 'spent elsewhere', height: 0, double_spend_seen: true }),
      ],
    };
    rpc.calls = [];
    expect(await driver.received!(signal())).toEqual([
      { address: two, payment: { txId: 'mined', coin: 'XMR', units: 312_500_000_000n }, confirmations: 12 },
      { address: three, payment: { txId: 'announced', coin: 'XMR', units: 312_500_000_000n }, confirmations: 0 },
    ]);
    expect(rpc.calls).toEqual(['get_height', 'get_transfers']);
  });

  it.each([undefined, LOGIN])('is abandoned after the time limit if it does not answer (login: %s)', async (login) => {
    await start(login);
    rpc.delayMs = 60_000;
    const begun = performance.now();
    const calls = [1, 2, 3].map(() => driver.open(invoice, undefined, AbortSignal.timeout(100)));
    for (const call of calls) await expect(call).rejects.toThrow();
    expect(performance.now() - begun).toBeLessThan(30_000);
    rpc.delayMs = 0;
    expect((await open()).walletAddress).toBe(rpc.addresses.at(-1));
  });

  it.each([undefined, LOGIN])('may close idle connections (login: %s)', async (login) => {
    await start(login);
    for (let i = 1; i <= 5; i++) {
      expect((await open()).walletAddress).toBe(rpc.addresses[i]);
      rpc.cut();
    }
  });

  it('may require a login, which concurrent calls share', async () => {
    await start(LOGIN);
    const opened = await Promise.all(Array.from({ length: 10 }, () => open()));
    expect(new Set(opened.map(({ walletAddress }) => walletAddress)).size).toBe(10);
    await start(LOGIN, 'user:another');
    await expect(open()).rejects.toThrow('status 401');
  });
});

describe('A payment to a Monero wallet', () => {
  it('is reported once, to the last piconero, unless its payer spends the coins elsewhere', async () => {
    const opened = await open();
    const amount = 2n ** 53n + 1n;
    rpc.transfers = {
      in: [transfer({ amount })],
      pool: [
        transfer({ confirmations: undefined, amount }),
        transfer({ txid: 'b'.repeat(64), confirmations: undefined }),
        transfer({ txid: 'c'.repeat(64), double_spend_seen: true }),
      ],
    };
    const payments = await driver.observe!(opened, signal());
    const at = new Date(1_700_000_000_000);
    const one = { position: 1, coin: 'XMR', address: opened.walletAddress, at, minedAt: at };
    expect(payments).toHaveLength(2);
    expect(payments).toContainEqual({ ...one, txId: 'a'.repeat(64), units: amount, confirmations: 12 });
    expect(payments).toContainEqual({ ...one, txId: 'b'.repeat(64), units: 312_500_000_000n, confirmations: 0 });
  });

  it.each([
    [{ locked: true, unlock_time: 5_000_000 }, 9],
    [{ locked: false, unlock_time: 5_000 }, 12],
    [{ locked: true, unlock_time: 0 }, 12],
    [{ locked: true, unlock_time: 2_000_000_000, confirmations: 3 }, 3],
  ])('gets confirmations only once it is spendable: %j', async (set, confirmations) => {
    const opened = await open();
    rpc.transfers = { in: [transfer(set)] };
    expect(await driver.observe!(opened, signal())).toMatchObject([{ confirmations }]);
  });
});
