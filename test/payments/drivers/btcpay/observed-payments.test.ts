/** Payments that BTCPay lists in an odd way: the sound ones of the same invoice count all the same. */
import { describe, expect, it } from 'vitest';
import { asOwner } from '../../../setup/database.ts';
import { eventually } from '../../../setup/freehold.ts';
import type { Btcpay, StoredInvoice } from './btcpay.ts';
import { openStore } from './store.ts';

const { btcpay, freehold, balance, opened, shows, tell } = await openStore();
const { db } = freehold;

type Payment = ReturnType<Btcpay['pay']>;
const warning = async (): Promise<string | null> =>
  (await freehold.operator('{ gateways { name warning } }')).data.gateways.find(
    ({ name }: { name: string }) => name === 'btcpay',
  ).warning;
const warned = (orderNumber: string) =>
  db.query(`select 1 from event where type = 'gateway.warned' and data ->> 'warning' like '%' || $1 || '%'`, [
    orderNumber,
  ]);
/** Lists another settled payment before the sound one of an invoice. */
const list = (invoice: StoredInvoice, change: (payment: Payment) => void, value = '0.001') => {
  change(btcpay.pay(invoice, value, 'Settled'));
  btcpay.pay(invoice, '0.001', 'Settled');
};

describe('A settled payment is credited', () => {
  it.each([
    ['nothing', 'BTC', '0.00000000'],
    ['less than a unit over Lightning', 'BTC-LN', '0.000000005'],
  ])('beside one of %s', async (_kind, coin, value) => {
    const { topUp, invoice } = await opened(coin);
    list(invoice, () => {}, value);
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50, payment_exception: null });
    expect(await warning()).toBeNull();
  });

  it('once although BTCPay lists it twice', async () => {
    const { topUp, invoice } = await opened();
    const payment = btcpay.pay(invoice, '0.001', 'Settled');
    invoice.payments.push({ ...payment });
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50, payment_exception: null });
    expect(await warning()).toBeNull();
  });

  it.each<[string, (payment: Payment) => void]>([
    ['an id that is no text', (payment) => Object.assign(payment, { id: 'an\0id' })],
    ['a date in milliseconds', (payment) => Object.assign(payment, { receivedDate: Date.now() })],
    ['a value beyond all money', (payment) => Object.assign(payment, { value: '99999999999999' })],
    ['a value that is no amount', (payment) => Object.assign(payment, { value: '-0.001' })],
  ])('beside one with %s, which the gateway names until it is gone', async (_kind, change) => {
    const { topUp, invoice } = await opened();
    list(invoice, change);
    for (let i = 0; i < 2; i++) {
      await tell(invoice);
      await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50, payment_exception: null });
    }
    expect(await eventually(warning)).toContain(topUp.order_number);
    expect(await warned(topUp.order_number)).toHaveLength(1);
    invoice.payments.shift();
    await tell(invoice);
    await eventually(async () => (await warning()) === null);
    expect(await balance()).toBe(50);
  });

  it('once the database takes it, and the gateway names its top-up until then', async () => {
    const { topUp, invoice } = await opened();
    const run = (sql: string) => asOwner(db, sql);
    await run(`alter table payment add constraint refusing check (order_number <> '${topUp.order_number}')`);
    btcpay.pay(invoice, '0.001', 'Settled');
    await eventually(async () => {
      await tell(invoice);
      return await warning();
    });
    expect(await warning()).toContain(`${topUp.order_number} cannot be settled: `);
    expect(await warned(topUp.order_number)).toHaveLength(1);
    await run('alter table payment drop constraint refusing');
    await tell(invoice);
    await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50 });
    await eventually(async () => (await warning()) === null);
  });
});
