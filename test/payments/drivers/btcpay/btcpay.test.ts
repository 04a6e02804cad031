/** BTCPay Server: the service credits each payment of an invoice once, at the right exchange rate. */
import { describe, expect, it } from 'vitest';
import { btcpay as kind } from '../../../../provisioning/payments/drivers/btcpay/btcpay.ts';
import { eventually } from '../../../setup/freehold.ts';
import { API_KEY, STORE } from './btcpay.ts';
import { openStore } from './store.ts';

const { btcpay, freehold, worth, order, read, topUps, balance, opened, shows, tell } = await openStore();
const { db } = freehold;

describe('A top-up by BTCPay', () => {
  it('is an invoice in the coin, for the quoted amount', async () => {
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

  it('over Lightning is final once it is paid', async () => {
    const { topUp, invoice } = await opened('BTC-LN');
    expect(topUp.payment_uri).toBe(`lightning:${topUp.wallet_address.toUpperCase()}`);
    btcpay.pay(invoice, '0.00100000123', 'Settled');
    expect(await tell(invoice)).toBe(200);
    await shows(topUp.order_number, { status: 'confirmed', received_crypto: '0.001', credited_usd: 50 });
  });

  it('asks for the fee of the store, too, and credits only the ordered amount', async () => {
    btcpay.fee = 150n;
    const { topUp, invoice } = await opened();
    expect(topUp.amount_crypto).toBe('0.0010015');
    btcpay.pay(invoice, '0.0010015', 'Settled');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50, payment_exception: null });
  });

  it('makes one invoice although the first answer was lost', async () => {
    btcpay.faults = ['lost'];
    const { topUp } = await opened();
    const made = btcpay.invoices.filter(({ metadata }) => metadata.orderId === topUp.order_number);
    expect(made).toHaveLength(1);
  });

  it('is refused if its address belongs to another top-up', async () => {
    const { topUp } = await opened();
    btcpay.destination = topUp.wallet_address;
    expect((await order()).body.code).toBe('coin_unavailable');
    btcpay.destination = undefined;
    expect((await opened()).topUp.wallet_address).not.toBe(topUp.wallet_address);
  });

  it.each([[['broken', 'broken']], [['lost', 'broken']]] as const)(
    'is refused without a trace while BTCPay is %j',
    async (faults) => {
      btcpay.faults = [...faults];
      expect((await order()).body.code).toBe('coin_unavailable');
      expect(await topUps()).toEqual([]);
    },
  );
});

describe('A payment to BTCPay', () => {
  it('is named without a webhook, by two calls for all invoices', async () => {
    const driver = kind.open({
      url: btcpay.url,
      store: STORE,
      api_key: API_KEY,
      speed_policy: 'MediumSpeed',
      methods: [],
    });
    const [{ invoice: one }, { invoice: two }] = [await opened(), await opened('BTC-LN')];
    const named = async () =>
      (await driver.received!(AbortSignal.timeout(20_000))).map(({ orderNumber }) => orderNumber);
    const numbers = [one, two].map(({ metadata }) => metadata.orderId);
    expect(await named()).not.toEqual(expect.arrayContaining(numbers));
    btcpay.pay(one, '0.001');
    btcpay.pay(two, '0.001', 'Settled');
    // Others may make invoices in the store.
    for (const orderId of ['\0', ['a'], 7, null, 'x'.repeat(300), 'x'])
      btcpay.invoices.push({ ...two, id: String(orderId), metadata: { orderId } as never });
    expect((await named()).filter((number) => !/^(TOP-\w{10}|x)$/.test(number!))).toEqual([]);
    expect(await named()).toEqual(expect.arrayContaining(numbers));
  });

  it('is shown, and credited once it is settled, except if another payment replaced it', async () => {
    const { topUp, invoice } = await opened();
    const replaced = btcpay.pay(invoice, '0.001');
    await tell(invoice, 'InvoiceProcessing');
    await shows(topUp.order_number, { status: 'confirming', tx_ids: [replaced.id.slice(0, 64)], confirmations: 0 });
    replaced.status = 'Invalid';
    const payment = btcpay.pay(invoice, '0.001');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirming', tx_ids: [payment.id.slice(0, 64)] });
    expect(await balance()).toBe(0);
    payment.status = 'Settled';
    await tell(invoice, 'InvoiceSettled');
    await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50 });
    expect(await balance()).toBe(50);
  });

  it('is credited at its value if it is partial, too large or late', async () => {
    const { topUp, invoice } = await opened();
    btcpay.pay(invoice, '0.0004', 'Settled');
    invoice.additionalStatus = 'PaidPartial';
    await tell(invoice);
    await eventually(async () => (await balance()) === 20);
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

  it('to an invoice that the store calls invalid is not credited', async () => {
    const { topUp, invoice } = await opened();
    btcpay.pay(invoice, '0.001');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirming' });
    invoice.status = 'Invalid';
    await tell(invoice);
    await shows(topUp.order_number, { received_crypto: '0' });
    expect(await balance()).toBe(0);
  });

  it('is reported to the operator, and stays credited, when it vanishes after its credit', async () => {
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
    expect(data.payments.data).toEqual([{ status: 'FINAL', missingSince: expect.any(String) }]);
    payment.status = 'Settled';
    await tell(invoice);
    await eventually(async () => (await missing()).length === 2);
    expect(await missing()).toEqual(['payment.missing', 'payment.found']);
    expect(await balance()).toBe(50);
  });

  it('is credited even after the usual observation time of its address', async () => {
    const { topUp, invoice } = await opened();
    const payment = btcpay.pay(invoice, '0.001');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirming' });
    await db.query(
      `update top_up set created_at = now() - interval '40 days', expires_at = now() - interval '39 days' where order_number = $1`,
      [topUp.order_number],
    );
    const tasks = () => db.query('select 1 from task where subject = $1', [topUp.order_number]);
    const calls = btcpay.calls.length;
    await tell(invoice);
    await eventually(async () => btcpay.calls.length >= calls + 2);
    expect(await tasks()).toHaveLength(1);
    payment.status = 'Settled';
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed' });
    await eventually(async () => !(await tasks()).length);
  });

  it('waits while BTCPay is unreachable, and is credited afterwards', async () => {
    const { topUp, invoice } = await opened();
    btcpay.pay(invoice, '0.001', 'Settled');
    btcpay.broken.add(invoice.id);
    await tell(invoice);
    await eventually(async () => !btcpay.broken.size);
    expect((await read(topUp.order_number)).status).toBe('pending');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed' });
  });
});

describe('A payout from the wallet of BTCPay', () => {
  const REQUEST = `mutation ($accountId: ID!, $address: Line!) {
    requestPayout(accountId: $accountId, coin: "BTC", amountUsd: 10, key: "leaves", address: $address, reason: "She leaves") { id } }`;
  it('goes to no address with a typing error', async () => {
    const { id: accountId } = await freehold.newAccount();
    const refusal = async (address: string) =>
      (await freehold.operator(REQUEST, { accountId, address })).errors[0].message as string;
    const right = 'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu';
    for (const wrong of ['x', right.replace('z306', 'z307')])
      expect(await refusal(wrong)).toBe('address is no address of bitcoin.');
    expect(await refusal(right)).toContain('The account can get 0 USD.');
  });
});
