/** Monero on a real chain: each payment is credited once, through reorganisations and failures of the wallet. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../../../setup/end.ts';
import { eventually, startFreehold } from '../../../setup/freehold.ts';
import { say } from '../../../setup/say.ts';
import { newFolder, removeFolder } from '../../../setup/spawn.ts';
import { startRates } from '../../exchange-rates.ts';
import { moneroVersion, startRegtest, WALLET_LOGIN } from './monerod.ts';

const version = moneroVersion();
if (!version) say('Skipped: tests over Monero, because it is not installed (apt-get install monero).');

/** Starts the service with a wallet and a customer. */
async function open() {
  const chain = await startRegtest();
  const folder = newFolder();
  atEnd(() => removeFolder(folder));
  const file = join(folder, 'payments.json');
  const gateway = { driver: 'monero', address: chain.address, confirmations: 3 };
  const ends = { wallet: { url: chain.walletUrl, login: WALLET_LOGIN }, daemon: { url: chain.daemonUrl } };
  const rates = await startRates({ XMR: 160 });
  writeFileSync(file, JSON.stringify({ gateways: [{ ...gateway, ...ends }], rates: rates.sources }));
  chmodSync(file, 0o600);
  const freehold = await startFreehold({ PAYMENTS_FILE: file, ALLOW_SIMULATED: 'true', POLL_SECONDS: '0.2' });
  await rates.say(freehold.db, { XMR: 160 });
  return { chain, freehold, account: await freehold.newAccount() };
}
const world = version ? await open() : undefined;

describe.runIf(world)(`Monero (${version})`, { timeout: 180_000 }, () => {
  const { chain, freehold, account } = world!;

  /** 50 USD at 160 USD for one coin. */
  const DUE = 312_500_000_000n;
  const order = async () => {
    const { status, body } = await account.rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'XMR' });
    return { status, body };
  };
  const opened = () =>
    eventually(async () => {
      const { status, body } = await order();
      return status === 200 && body;
    });
  /** Waits until the top-up has these members. It triggers checks, which become rare while the wallet catches up. */
  const shows = async (number: string, wanted: object) => {
    let shown: Record<string, unknown> = {};
    await eventually(async () => {
      await freehold.db.query('update task set run_at = least(run_at, now()) where subject = $1', [number]);
      await new Promise((resume) => setTimeout(resume, 250));
      shown = (await account.rest('GET', `/v1/billing/topups/${number}`)).body;
      return Object.entries(wanted).every(([key, value]) => String(shown[key]) === String(value));
    }).catch(() => {});
    const picked = Object.fromEntries(Object.keys(wanted).map((key) => [key, String(shown[key])]));
    expect(picked).toEqual(Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, String(value)])));
  };
  const paymentsOf = (number: string) =>
    freehold.db.query<{ status: string; missing: boolean }>(
      'select status, missing_since is not null as missing from payment where order_number = $1',
      [number],
    );
  /** Triggers another check, and waits for its end. */
  const lookedAt = async (number: string) => {
    await freehold.db.query(`update task set run_at = now() where subject = $1`, [number]);
    await eventually(async () => {
      const idle = await freehold.db.query(
        'select 1 from task where subject = $1 and attempts = 0 and leased_by is null and run_at > now()',
        [number],
      );
      return idle.length > 0;
    });
  };

  it('opens no top-up while the wallet has another address, holds a spend key, or is closed', async () => {
    for (const which of ['none', 'full'] as const) {
      await chain.open(which);
      const { status, body } = await order();
      expect([status, body.code]).toEqual([422, 'coin_unavailable']);
    }
  });

  it('credits a payment once although the chain forgets it in between', async () => {
    await chain.open('view');
    const { order_number: number, wallet_address: address, payment_uri: uri, amount_crypto: amount } = await opened();
    expect(amount).toBe('0.3125');
    expect(uri).toBe(`monero:${address}?tx_amount=0.3125&tx_description=${number}`);
    const { tx_hash: hash, tx_blob: blob } = await chain.pay([[address, DUE]]);
    await shows(number, { status: 'confirming', received_crypto: '0.3125', confirmations: 0, tx_ids: [hash] });
    await chain.confirm(hash, 2);
    await shows(number, { status: 'confirming', confirmations: 2 });
    await chain.forget(2);
    await chain.mine(3);
    await shows(number, { status: 'confirming', received_crypto: '0', tx_ids: '' });
    // The wallet ignores a repeated announcement until the transaction is in a block.
    await chain.resend(blob);
    await chain.confirm(hash, 2);
    await shows(number, { status: 'confirming', received_crypto: '0.3125', confirmations: 2 });
    expect(await account.balance()).toBe(0);
    await chain.mine(1);
    await shows(number, { status: 'confirmed', credited_usd: 50, tx_ids: [hash] });
    await chain.mine(1);
    await lookedAt(number);
    expect(await account.balance()).toBe(50);
  });

  it('notices a payment by one call for all addresses, while the task of its top-up rests', async () => {
    const { order_number: number, wallet_address: address } = await opened();
    const rest = `update task set run_at = now() + interval '1 hour' where subject = $1 and leased_by is null returning id`;
    await eventually(async () => (await freehold.db.query(rest, [number])).length);
    const { tx_hash: hash } = await chain.pay([[address, DUE]]);
    const read = async () => (await account.rest('GET', `/v1/billing/topups/${number}`)).body;
    await eventually(async () => (await read()).status === 'confirming');
    await chain.confirm(hash, 3);
    await shows(number, { status: 'confirmed' });
    expect(await account.balance()).toBe(100);
  });

  it('credits every output of a transaction to its top-up', async () => {
    const [one, two] = [await opened(), await opened()];
    expect(one.wallet_address).not.toBe(two.wallet_address);
    const { tx_hash: hash } = await chain.pay([
      [one.wallet_address, DUE / 2n],
      [one.wallet_address, DUE / 2n],
      [two.wallet_address, DUE],
    ]);
    await chain.confirm(hash, 3);
    for (const { order_number: number } of [one, two])
      await shows(number, { status: 'confirmed', received_crypto: '0.3125', payment_exception: null });
    expect(await account.balance()).toBe(200);
  });

  it('does not credit a locked payment', async () => {
    const { order_number: number, wallet_address: address } = await opened();
    const { tx_hash: hash } = await chain.pay([[address, DUE]], { unlock_time: (await chain.height()) + 8 });
    await chain.confirm(hash, 5);
    await shows(number, { status: 'confirming', confirmations: 2 });
    await lookedAt(number);
    expect(await account.balance()).toBe(200);
    await chain.mine(5);
    await shows(number, { status: 'confirmed' });
    expect(await account.balance()).toBe(250);
  });

  it('keeps its addresses although the wallet is killed', async () => {
    const before = await opened();
    await chain.killWallet();
    const after = await opened();
    expect(after.wallet_address).not.toBe(before.wallet_address);
    const { tx_hash: hash } = await chain.pay([[before.wallet_address, DUE]]);
    await chain.confirm(hash, 3);
    await shows(before.order_number, { status: 'confirmed' });
    expect(await account.balance()).toBe(300);
  });

  it('reports a payment that vanishes after its credit to the operator, and takes nothing back', async () => {
    const { order_number: number, wallet_address: address } = await opened();
    const { tx_hash: hash, tx_blob: blob } = await chain.pay([[address, DUE]]);
    await chain.confirm(hash, 3);
    await shows(number, { status: 'confirmed' });
    await chain.forget(3);
    await chain.mine(4);
    const looks = (wanted: boolean) =>
      eventually(async () => {
        await lookedAt(number);
        return (await paymentsOf(number)).every(({ missing }) => missing === wanted);
      });
    await looks(true);
    expect(await account.balance()).toBe(350);
    await chain.resend(blob);
    await chain.confirm(hash, 1);
    await looks(false);
    expect(await paymentsOf(number)).toEqual([{ status: 'CREDITED', missing: false }]);
    expect(await account.balance()).toBe(350);
    const events = await freehold.db.query<{ type: string }>(
      `select event.type from event join payment on payment.id = event.subject where order_number = $1 order by event.id`,
      [number],
    );
    expect(events.map(({ type }) => type)).toEqual(['payment.missing', 'payment.found']);
  });
});
