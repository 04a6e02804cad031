/** A restored archive beside machines, payments and payouts of the lost time. */
import { join } from 'node:path';
import type { Hex } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it } from 'vitest';
import { archiveKey } from '../../entities/archive/key.ts';
import { requireOwnDatabase } from '../../entities/archive/own-database.ts';
import { writeArchive } from '../../entities/archive/write.ts';
import { Database } from '../../entities/database/database.ts';
import { newId } from '../../entities/ids.ts';
import { chainSyncName } from '../../provisioning/payments/chains/sync.ts';
import { EVM } from '../../provisioning/payments/drivers/evm/evm.ts';
import { OBSERVER_PROCESS } from '../../provisioning/servers/reconcile/observe.ts';
import type { Context } from '../../resolvers/context.ts';
import { createTopUp } from '../../resolvers/payments/billing.ts';
import { creditTransaction } from '../../resolvers/payments/payments.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { closeBreaker } from '../../resolvers/servers/findings.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from '../payments/drivers/evm/anvil.ts';
import { emptyDatabase, runCommand } from '../setup/archives.ts';
import { type CustomerShop, openCustomerShop } from '../setup/customer-shop.ts';
import { asSuperuser, newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { contextOf } from '../setup/shop.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';
import { VAULT } from '../setup/vault.ts';

const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', labels: {}, autoRenew: true };
const xpub = mnemonicToAccount('test test test test test test test test test test test junk', {
  path: "m/44'/60'/9'",
}).getHdKey().publicExtendedKey;
const UNITS = 50_000_000n;

/** Works until a server has that status. */
const settle = ({ work, read }: CustomerShop, orderNumber: string, status: string) =>
  eventually(async () => {
    await work();
    return (await read(orderNumber)).status === status;
  });

const operatorOf = (shop: CustomerShop): Context => ({
  ...shop.context,
  viewer: { ...shop.context.viewer!, accountId: null, kind: 'operator', credentialId: 'operator', name: null },
});

describe.skipIf(NO_ANVIL)('A service with a database of ten minutes ago', () => {
  let anvil: Anvil;
  let shop: CustomerShop;
  let lines: string;
  const folder = newFolder();
  const orders = {} as Record<'kept' | 'deleted' | 'lost', string>;
  let lostAddress: string;
  let payments: Record<'kept' | 'lost', { address: Hex; txId: Hex }>;
  let journal: string[];
  let accountId: string;

  const openWith = (db: Database | undefined) => {
    const given = { urls: [anvil.url], xpub, confirmations: 1, pollSeconds: 1, staleSeconds: 3_600 };
    const driver = EVM.open({
      ...{ network: 'base', chainId: 8453, ...given, batchMax: 10, rangeMax: 100 },
      tokens: [{ code: 'USDC', name: 'USD Coin', pegged: true, contract: USDC, decimals: 6 }],
    });
    return openCustomerShop(atEnd, { ...(db && { db }), folder, payments: [driver] });
  };
  const deliver = async (before: CustomerShop) => {
    const { orderNumber } = (await orderServer(before.context, ORDER)).server;
    await settle(before, orderNumber, 'RUNNING');
    return orderNumber;
  };
  const pay = async ({ tick }: CustomerShop, address: Hex) => {
    await anvil.mint(anvil.account(1).address, UNITS);
    const txId = await anvil.transfer(1, address, UNITS);
    await anvil.mined(txId);
    await anvil.control.mine({ blocks: 3 });
    await tick(chainSyncName('base'));
    return { address, txId };
  };

  beforeAll(async () => {
    anvil = await startAnvil();
    atEnd(() => anvil.stop());
    atEnd(() => removeFolder(folder));
    const before = await openWith(undefined);
    accountId = before.accountId;
    await requireOwnDatabase(before.db);
    // Two sources report one dollar for the coin, for the duration of the test.
    await before.db.query(`insert into coin_rate (coin, source, rate_micros, observed_at)
      select 'USDC', source, 1000000, now() + interval '1 day' from unnest(array['one', 'two']) as source`);
    await before.tick(chainSyncName('base'));
    orders.kept = await deliver(before);
    orders.deleted = await deliver(before);
    await before.db.query(
      `insert into webhook (id, account_id, url, event_filter, secret, status) values ($1, $2, 'https://example.org', '{*}', '', 'ENABLED')`,
      [newId('whk'), accountId],
    );
    const kept = await createTopUp(before.context, { amountUsd: 50_000_000n, crypto: 'USDC' });
    const file = join(folder, 'ten-minutes-ago.age');
    await writeArchive({ url: before.url, key: archiveKey(VAULT), file });

    orders.lost = await deliver(before);
    lostAddress = (await before.read(orders.lost)).ipv4!;
    await deleteServer(before.context, orders.deleted);
    await settle(before, orders.deleted, 'DELETED');
    const later = await createTopUp(before.context, { amountUsd: 50_000_000n, crypto: 'USDC' });
    payments = {
      kept: await pay(before, kept.walletAddress as Hex),
      lost: await pay(before, later.walletAddress as Hex),
    };
    expect(await before.balance(accountId)).toBeGreaterThan(100_000_000n);

    journal = before.driver.journal();
    const { environment } = await emptyDatabase(atEnd);
    const imported = await runCommand('import', environment, file);
    expect(imported.code, imported.output).toBe(0);
    lines = imported.output;
    shop = await openWith(await Database.open(environment.DATABASE_URL, { poolSize: 3 }));
    shop = { ...shop, accountId, context: contextOf(shop, accountId) };
  });

  it('tells the operator what it has stopped', async () => {
    expect(lines).toMatch(/Workers leave the machines of the engine \S+ alone, until releaseBrake\./);
    expect(lines).toMatch(/1,000,000 numbers of xpub:\w+ are left out\./);
    await requireOwnDatabase(shop.db);
  });

  it('reports machines made since then, and machines that are gone, at its first look', async () => {
    await shop.tick(OBSERVER_PROCESS);
    const found = await shop.db.query('select kind, order_number, detail from finding order by kind');
    expect(found).toEqual([
      { kind: 'LOST', orderNumber: orders.deleted, detail: expect.anything() },
      { kind: 'ORPHAN', orderNumber: orders.lost, detail: expect.stringContaining(lostAddress) },
    ]);
  });

  it('makes and destroys no machine until the operator has looked', async () => {
    await expect(orderServer(shop.context, ORDER)).rejects.toMatchObject({ code: 'out_of_stock' });
    await shop.work();
    expect(shop.driver.journal()).toEqual(journal);
  });

  it('gives a new machine no address of a machine that it does not know', async () => {
    const [{ driver } = { driver: '' }] = await shop.db.query<{ driver: string }>('select driver from brake');
    await closeBreaker(operatorOf(shop), driver);
    await shop.fund(accountId, 20_000_000n);
    const addresses = new Set<string>();
    for (let n = 0; n < 2; n++) addresses.add((await shop.read(await deliver(shop))).ipv4!);
    expect(addresses).not.toContain(lostAddress);
    const [resting] = await shop.db.query('select free_at > now() as rests from address where address = $1', [
      lostAddress,
    ]);
    expect(resting).toEqual({ rests: true });
  });

  it('credits a later payment to a known address, and tells the operator of one to a forgotten address', async () => {
    const credited = await shop.balance(accountId);
    await shop.tick(chainSyncName('base'));
    expect(await shop.balance(accountId)).toBe(credited + 50_000_000n);
    const told = await shop.db.query(`select subject, data from event where type = 'payment.lost'`);
    expect(told).toEqual([
      {
        subject: payments.lost.txId,
        data: { network: 'base', coin: 'USDC', address: payments.lost.address, units: String(UNITS) },
      },
    ]);
  });

  it('gives out no forgotten address, and credits a payment there to the account that the operator names, once', async () => {
    const next = await createTopUp(shop.context, { amountUsd: 50_000_000n, crypto: 'USDC' });
    expect(next.walletAddress).not.toBe(payments.lost.address);
    const operator = operatorOf(shop);
    const given = { network: 'base', txId: payments.lost.txId, reason: 'She has shown it' };
    await expect(creditTransaction(operator, given)).rejects.toMatchObject({
      code: 'validation_failed',
      message: expect.stringContaining(payments.lost.address),
    });
    const before = await shop.balance(accountId);
    for (let n = 0; n < 2; n++) {
      const [payment] = await creditTransaction(operator, { ...given, accountId });
      expect(payment).toMatchObject({ accountId, units: String(UNITS) });
      await shop.tick(chainSyncName('base'));
    }
    expect(await shop.balance(accountId)).toBe(before + 50_000_000n);
    expect(await shop.balanced()).toBe(true);
  });

  it('tells the webhooks of its accounts', async () => {
    const told = await shop.db.query(`select account_id from event where type = 'account.restored'`);
    expect(told).toEqual([{ accountId }]);
  });
});

it('Two processes that start at once with a new database both know it', async () => {
  const url = await newDatabaseUrl();
  const both = await Promise.all([Database.open(url), Database.open(url)]);
  atEnd(() => Promise.all(both.map((db) => db.close())));
  await both[0].query('select 1');
  for (let n = 0; n < 5; n++) {
    await asSuperuser(both[0], 'truncate own_database');
    await Promise.all(both.map(requireOwnDatabase));
  }
});
