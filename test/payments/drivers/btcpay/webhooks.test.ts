/** Webhook calls of BTCPay Server: signed, possibly repeated, late and out of order. */
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../../config.ts';
import { startService } from '../../../../main.ts';
import { eventually } from '../../../setup/freehold.ts';
import { UNLIMITED } from '../../../setup/spawn.ts';
import { type StoredInvoice, WEBHOOK_SECRET } from './btcpay.ts';
import { openStore } from './store.ts';

const { btcpay, freehold, environment, read, balance, opened, shows, send, tell } = await openStore();
const { db } = freehold;

describe('A webhook call of BTCPay', () => {
  it('needs a signature, and then only makes the service check the invoice', async () => {
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

  it('may name an unknown invoice, or be no JSON', async () => {
    const { topUp } = await opened();
    const foreign: StoredInvoice = { ...btcpay.invoiceOf(topUp.order_number), id: 'another' };
    expect(await tell(foreign)).toBe(200);
    expect(await tell({ ...foreign, metadata: { orderId: 'cron:renewals' } })).toBe(200);
  });

  it('leads to one credit when it comes fifty times, in any order, before and after a restart', async () => {
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
    try {
      expect(new Set(await deliver(20))).toEqual(new Set([200]));
      await shows(topUp.order_number, { status: 'confirmed', credited_usd: 50 });
      expect(await balance()).toBe(50);
      const credits = await again.db.query(`select 1 from transfer where external_key like $1`, [
        `pay:bitcoin:${payment.id.slice(0, 64)}:%`,
      ]);
      expect(credits).toHaveLength(1);
    } finally {
      await again.stop();
    }
  });
});
