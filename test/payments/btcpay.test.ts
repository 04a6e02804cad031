/** BTCPay Server: what its invoices have is credited once, whatever it calls us with, how often, and in which order. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../config.ts';
import { startService } from '../../main.ts';
import { newDatabaseUrl } from '../database.ts';
import { eventually, startFreehold, type TestAccount } from '../freehold.ts';
import { freePort, newFolder, removeFolder, UNLIMITED } from '../spawn.ts';
import { API_KEY, Btcpay, STORE, type StoredInvoice, WEBHOOK_SECRET } from './btcpay.ts';
import { startRates } from './rates.ts';

const btcpay = await new Btcpay().start();
const folder = newFolder();
const file = join(folder, 'payments.json');
const gateway = { driver: 'btcpay', url: btcpay.url, store: STORE, api_key: API_KEY, webhook_secret: WEBHOOK_SECRET };
const rates = await startRates({ BTC: 50_000, 'BTC-LN': 50_000 });
writeFileSync(file, JSON.stringify({ gateways: [gateway], rates: rates.sources }));
chmodSync(file, 0o600);
afterAll(async () => {
  await btcpay.stop();
  removeFolder(folder);
});
const environment = {
  DATABASE_URL: await newDatabaseUrl(afterAll),
  DATA_DIR: folder,
  PORT: String(await freePort()),
  INTERNAL_PORT: String(await freePort()),
  PAYMENTS_FILE: file,
  ALLOW_SIMULATED: 'true',
  // Nothing is looked at but what BTCPay calls for.
  POLL_SECONDS: '60',
};
const freehold = await startFreehold(environment);
let { db } = freehold;
let account: TestAccount;
let usd = 0;
const worth = (wanted: number) => {
  usd = wanted;
  return rates.say(db, { BTC: usd, 'BTC-LN': usd });
};
beforeEach(async () => {
  btcpay.faults = [];
  btcpay.fee = 0n;
  if (usd !== 50_000) await worth(50_000);
  account = await freehold.newAccount();
});

const order = (crypto = 'BTC') => account.rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto });
const opened = async (crypto = 'BTC') => {
  const { status, body } = await order(crypto);
  expect([status, body]).toEqual([200, body]);
  return { topUp: body, invoice: btcpay.invoiceOf(body.order_number) };
};
const read = async (number: string) => (await account.rest('GET', `/v1/billing/topups/${number}`)).body;
const shows = (number: string, wanted: object) =>
  eventually(async () => {
    const body = await read(number);
    return Object.entries(wanted).every(([key, value]) => String(body[key]) === String(value)) && body;
  });
const send = async ({ body, headers }: ReturnType<Btcpay['event']>) => {
  const answer = await fetch(`${freehold.publicUrl}/hooks/payments`, { method: 'POST', body, headers });
  await answer.arrayBuffer();
  return answer.status;
};
const tell = (invoice: StoredInvoice, type = 'InvoiceProcessing') => send(btcpay.event(invoice, type));

describe('A top-up by BTCPay', () => {
  it('is an invoice in the coin, for what was quoted', async () => {
    const { topUp, invoice } = await opened();
    expect(topUp).toMatchObject({
      crypto: 'BTC',
      network: 'bitcoin',
      amount_crypto: '0.001',
      confirmations_required: 2,
    });
    expect(topUp.wallet_address).toMatch(/^bc1q/);
    expect(topUp.payment_uri).toBe(`bitcoin:${topUp.wallet_address}?amount=0.00100000`);
    expect(invoice).toMatchObject({ amount: '0.001', currency: 'BTC', metadata: { orderId: topUp.order_number } });
    expect(invoice.checkout).toMatchObject({
      paymentMethods: ['BTC-CHAIN'],
      lazyPaymentMethods: false,
      expirationMinutes: 30,
    });
  });

  it('over Lightning is final when it is paid', async () => {
    const { topUp, invoice } = await opened('BTC-LN');
    expect(topUp.payment_uri).toBe(`lightning:${topUp.wallet_address.toUpperCase()}`);
    btcpay.pay(invoice, '0.00100000123', 'Settled');
    expect(await tell(invoice)).toBe(200);
    await shows(topUp.order_number, { status: 'confirmed', received_crypto: '0.001', credited_usd: 50 });
  });

  it('asks for what the store adds, and credits what was asked for', async () => {
    btcpay.fee = 150n;
    const { topUp, invoice } = await opened();
    expect(topUp.amount_crypto).toBe('0.0010015');
    btcpay.pay(invoice, '0.0010015', 'Settled');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50, payment_exception: null });
  });

  it('is made once, though the answer to its making was lost', async () => {
    btcpay.faults = ['lost'];
    const { topUp } = await opened();
    const made = btcpay.invoices.filter(({ metadata }) => metadata.orderId === topUp.order_number);
    expect(made).toHaveLength(1);
  });

  it('is refused where somebody else pays to', async () => {
    const { topUp } = await opened();
    btcpay.destination = topUp.wallet_address;
    expect((await order()).body.code).toBe('coin_unavailable');
    btcpay.destination = undefined;
    expect((await opened()).topUp.wallet_address).not.toBe(topUp.wallet_address);
  });

  it.each([[['broken', 'broken']], [['lost', 'broken']]] as const)(
    'is refused while BTCPay is %j, and nothing is left of it',
    async (faults) => {
      btcpay.faults = [...faults];
      expect((await order()).body.code).toBe('coin_unavailable');
      expect((await account.rest('GET', '/v1/billing/topups')).body.data).toEqual([]);
    },
  );
});

describe('A payment to BTCPay', () => {
  it('is seen, and credited when it is settled; what is replaced is not', async () => {
    const { topUp, invoice } = await opened();
    const replaced = btcpay.pay(invoice, '0.001');
    await tell(invoice, 'InvoiceProcessing');
    await shows(topUp.order_number, { status: 'confirming', tx_ids: [replaced.id.slice(0, 64)], confirmations: 0 });
    replaced.status = 'Invalid';
    const payment = btcpay.pay(invoice, '0.001');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirming', tx_ids: [payment.id.slice(0, 64)] });
    expect(await account.balance()).toBe(0);
    payment.status = 'Settled';
    await tell(invoice, 'InvoiceSettled');
    await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50 });
    expect(await account.balance()).toBe(50);
  });

  it('in parts, too large, or late is credited for what it is worth', async () => {
    const { topUp, invoice } = await opened();
    btcpay.pay(invoice, '0.0004', 'Settled');
    invoice.additionalStatus = 'PaidPartial';
    await tell(invoice);
    await eventually(async () => (await account.balance()) === 20);
    btcpay.pay(invoice, '0.001', 'Settled');
    invoice.additionalStatus = 'PaidOver';
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed', payment_exception: 'overpaid', credited_usd: 70 });

    const late = await opened();
    await db.query(
      `update top_up set status = 'EXPIRED', expires_at = now() - interval '5 seconds' where order_number = $1`,
      [late.topUp.order_number],
    );
    await worth(60_000);
    late.invoice.additionalStatus = 'PaidLate';
    btcpay.pay(late.invoice, '0.001', 'Settled');
    await tell(late.invoice);
    await shows(late.topUp.order_number, { status: 'confirmed', payment_exception: 'late', credited_usd: 60 });
  });

  it('of an invoice that the store calls invalid is not credited', async () => {
    const { topUp, invoice } = await opened();
    btcpay.pay(invoice, '0.001');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirming' });
    invoice.status = 'Invalid';
    await tell(invoice);
    await shows(topUp.order_number, { received_crypto: '0' });
    expect(await account.balance()).toBe(0);
  });

  it('that has been credited and is gone is told to the operator, and nothing is taken', async () => {
    const { topUp, invoice } = await opened();
    const payment = btcpay.pay(invoice, '0.001', 'Settled');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed' });
    const missing = async () =>
      (
        await db.query<{ type: string }>(
          `select type from event join payment on subject = payment.id where order_number = $1 order by event.id`,
          [topUp.order_number],
        )
      ).map(({ type }) => type);
    payment.status = 'Invalid';
    for (let i = 0; i < 3; i++) await tell(invoice);
    await eventually(async () => (await missing()).length);
    const { data } = await freehold.operator(
      `{ payments(orderNumber: "${topUp.order_number}") { data { status missingSince } } }`,
    );
    expect(data.payments.data).toEqual([{ status: 'CREDITED', missingSince: expect.any(String) }]);
    payment.status = 'Settled';
    await tell(invoice);
    await eventually(async () => (await missing()).length === 2);
    expect(await missing()).toEqual(['payment.missing', 'payment.found']);
    expect(await account.balance()).toBe(50);
  });

  it('waits while BTCPay cannot be asked, and is credited when it can', async () => {
    const { topUp, invoice } = await opened();
    btcpay.pay(invoice, '0.001', 'Settled');
    btcpay.faults = ['broken'];
    await tell(invoice);
    await eventually(async () => !btcpay.faults.length);
    expect((await read(topUp.order_number)).status).toBe('pending');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed' });
  });
});

describe('What BTCPay calls us with', () => {
  it('is believed to be his word only if it is signed, and then changes nothing by itself', async () => {
    const { topUp, invoice } = await opened();
    await eventually(async () => {
      const idle = await db.query('select 1 from task where subject = $1 and run_at > now() and leased_by is null', [
        topUp.order_number,
      ]);
      return idle.length;
    });
    const calls = btcpay.calls.length;
    const event = btcpay.event(invoice, 'InvoiceSettled');
    const forged = [
      btcpay.event(invoice, 'InvoiceSettled', 'another secret'),
      { ...event, body: event.body.replace(topUp.order_number, 'TOP-0000000000') },
      { ...event, headers: { 'content-type': 'application/json' } as typeof event.headers },
      { ...event, headers: { ...event.headers, 'btcpay-sig': 'sha256=00' } },
    ];
    for (const one of forged) expect(await send(one)).toBe(401);
    expect(btcpay.calls.length).toBe(calls);
    expect(await send(event)).toBe(200);
    await eventually(async () => btcpay.calls.length > calls);
    expect((await read(topUp.order_number)).status).toBe('pending');
  });

  it('may be about what is not ours, or no JSON', async () => {
    const { topUp } = await opened();
    const foreign: StoredInvoice = { ...btcpay.invoiceOf(topUp.order_number), id: 'another' };
    expect(await tell(foreign)).toBe(200);
    expect(await tell({ ...foreign, metadata: { orderId: 'cron:renewals' } })).toBe(200);
  });

  it('fifty times, in any order, before and after a restart, is one credit', async () => {
    const { topUp, invoice } = await opened();
    const payment = btcpay.pay(invoice, '0.001');
    const types = ['InvoiceProcessing', 'InvoiceReceivedPayment', 'InvoiceSettled'] as const;
    const more = { paymentMethodId: 'BTC-CHAIN', payment, afterExpiration: false };
    const events = types.map((type) =>
      btcpay.event(invoice, type, WEBHOOK_SECRET, type === 'InvoiceReceivedPayment' ? more : {}),
    );
    const deliver = async (count: number) =>
      Promise.all(Array.from({ length: count }, () => send(events[Math.floor(Math.random() * events.length)]!)));
    expect(new Set(await deliver(10))).toEqual(new Set([200]));
    payment.status = 'Settled';
    const during = deliver(20).catch(() => {});
    await freehold.stop();
    await during;
    const again = await startService({
      ...readConfig({ ...UNLIMITED, ...environment }),
      publicUrl: freehold.publicUrl,
    });
    ({ db } = again);
    try {
      expect(new Set(await deliver(20))).toEqual(new Set([200]));
      await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50 });
      expect(await account.balance()).toBe(50);
      const credits = await db.query(`select 1 from transfer where external_key like $1`, [
        `pay:bitcoin:${payment.id.slice(0, 64)}:%`,
      ]);
      expect(credits).toHaveLength(1);
    } finally {
      await again.stop();
    }
    expect(btcpay.problems).toEqual([]);
  });
});
