import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { FUNDS_MICROS, finish, traces } from '../../setup/customer-shop.ts';
import { deathOf, runScript } from '../../setup/spawn.ts';
import { another, ORDER, openX402Shop, PRICE, paymentForOrder, reconcile } from './shop.ts';

describe('A kill -9 during a payment', () => {
  it.concurrent.for(['reserved', 'settled', 'committing', 'committed'] as const)(
    'leaves the money in the balance or in one order, which a repeat of the payment gets: %s',
    async (moment, { onTestFinished }) => {
      const shop = await openX402Shop(onTestFinished);
      const payment = await paymentForOrder(shop.context);
      const environment = {
        ...{ DATABASE_URL: shop.url, FOLDER: shop.folder, ACCOUNT: shop.accountId },
        ...{ PAYMENT: payment.signature!, KILL_MOMENT: moment },
      };
      const payer = runScript(join(import.meta.dirname, 'killed-payer.ts'), environment, onTestFinished);
      expect(await deathOf(payer)).toBe('SIGKILL');
      if (moment !== 'reserved') await reconcile(shop, 'FINAL');
      const before = (await traces(shop, '')).balance.available;
      expect(before).toBe(moment === 'reserved' || moment === 'committed' ? FUNDS_MICROS : FUNDS_MICROS + PRICE);
      // Ends the lease of the dead request.
      await shop.db.query('update x402_authorization set lease_until = now()');
      const { server, paidBy } = await orderServer(another(shop.context), ORDER, payment);
      await finish(shop, server.orderNumber, 'RUNNING');
      const [counted] = await shop.db.query('select count(*)::int as servers from server');
      expect([counted, paidBy]).toEqual([{ servers: 1 }, 'x402']);
      expect((await traces(shop, '')).balance).toEqual({ available: FUNDS_MICROS, held: 0n });
      expect((await verifyBooks(shop.db)).balanced).toBe(true);
    },
  );
});
