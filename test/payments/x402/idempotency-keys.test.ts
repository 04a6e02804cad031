/** Orders with an idempotency key, whose clients sign a new payment for each try. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { digest } from '../../../entities/secrets.ts';
import type { Authorization } from '../../../provisioning/payments/drivers/x402/driver.ts';
import type { Context } from '../../../resolvers/context.ts';
import { IdempotencyKeys } from '../../../resolvers/idempotency.ts';
import type { PaymentHeaders } from '../../../resolvers/payments/sale.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { FUNDS_MICROS, traces } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import { deathOf, runScript } from '../../setup/spawn.ts';
import { another, ORDER, openX402Shop, paymentForOrder, refusalOf, type X402Shop } from './shop.ts';

const keyDigest = digest('key');

/** Orders by a payment over an idempotency key, as REST does. */
const order = (context: Context, payment: PaymentHeaders) =>
  new IdempotencyKeys(context.db, context.vault).once(
    {
      accountId: context.viewer!.accountId,
      ...{ owner: 'key_1', method: 'POST', path: '/v1/servers', key: 'order-1', input: ORDER },
    },
    async (db, keyDigest) => (await orderServer({ ...another(context), db, keyDigest }, ORDER, payment)).server.id,
  );

const servers = async ({ db }: X402Shop) => (await db.query('select from server')).length;
const nonceOf = ({ signature }: PaymentHeaders): string =>
  JSON.parse(Buffer.from(signature!, 'base64').toString()).payload.authorization.nonce;
/** Records the receipts of answers. */
function withReceipts(context: Context): { context: Context; receipts: { extensions?: object }[] } {
  const receipts: { extensions?: object }[] = [];
  const setHeader = (name: string, value: string) => {
    if (name === 'payment-response') receipts.push(JSON.parse(Buffer.from(value, 'base64').toString()));
  };
  return { context: { ...another(context), keyDigest, setHeader }, receipts };
}

describe('An idempotency key', () => {
  it('takes one payment if a retry with a new signature reaches another replica', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const [first, second] = [await paymentForOrder(shop.context), await paymentForOrder(shop.context)];
    const settled: string[] = [];
    const settle = shop.chain.settle.bind(shop.chain);
    shop.chain.settle = (authorization: Authorization) => {
      settled.push(authorization.nonce);
      return settle(authorization);
    };
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    shop.chain.afterSettle = () => gate;
    const answers = [order(shop.context, first)];
    await eventually(async () => settled.length === 1);
    answers.push(order(await shop.replica(), second));
    await new Promise((resume) => setTimeout(resume, 500));
    open();
    const [one, other] = await Promise.all(answers);
    expect([other!.answer, settled, await servers(shop)]).toEqual([one!.answer, [nonceOf(first)], 1]);
    expect((await traces(shop, '')).balance.available).toBe(FUNDS_MICROS);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
  });

  it('takes one payment of many that arrive at once', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payments = await Promise.all(Array.from({ length: 6 }, () => paymentForOrder(shop.context)));
    const replica = await shop.replica();
    await Promise.all(
      payments.map((payment, i) =>
        orderServer({ ...another(i % 2 ? replica : shop.context), keyDigest }, ORDER, payment),
      ),
    );
    expect([await servers(shop), (await shop.db.query('select from payment')).length]).toEqual([1, 1]);
  });

  it('goes on with the payment of a killed request, and says that it did not use the new one', async ({
    onTestFinished,
  }) => {
    const shop = await openX402Shop(onTestFinished);
    const [first, second] = [await paymentForOrder(shop.context), await paymentForOrder(shop.context)];
    const environment = {
      ...{ DATABASE_URL: shop.url, FOLDER: shop.folder, ACCOUNT: shop.accountId, KEY: 'key' },
      ...{ PAYMENT: first.signature!, KILL_MOMENT: 'settled' },
    };
    const payer = runScript(join(import.meta.dirname, 'killed-payer.ts'), environment, onTestFinished);
    expect(await deathOf(payer)).toBe('SIGKILL');
    await shop.db.query('update x402_authorization set lease_until = now()');
    const { context, receipts } = withReceipts(shop.context);
    await orderServer(context, ORDER, second);
    expect(receipts.map(({ extensions }) => extensions)).toEqual([{ unusedNonce: nonceOf(second) }]);
    expect([await servers(shop), (await traces(shop, '')).balance.available]).toEqual([1, FUNDS_MICROS]);
    const [counted] = await shop.db.query(
      'select count(*)::int as payments, min(nonce) as nonce from x402_authorization',
    );
    expect(counted).toEqual({ payments: 1, nonce: nonceOf(first) });
  });

  it('takes another payment once the first can no longer count', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const [first, second] = [await paymentForOrder(shop.context), await paymentForOrder(shop.context)];
    shop.chain.settle = async () => ({ refused: 'insufficient_funds', unsent: true }) as never;
    const refused = await refusalOf(orderServer({ ...another(shop.context), keyDigest }, ORDER, first));
    expect(refused.code).toBe('payment_rejected');
    Reflect.deleteProperty(shop.chain, 'settle');
    const { context, receipts } = withReceipts(shop.context);
    await orderServer(context, ORDER, second);
    expect(receipts.map(({ extensions }) => extensions)).toEqual([undefined]);
    expect(
      await shop.db.query('select nonce from x402_authorization join payment on id = payment_id where status <> $1', [
        'DROPPED',
      ]),
    ).toEqual([{ nonce: nonceOf(second) }]);
  });

  it('of another request or credential does not go on with a payment', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const [first, second] = [await paymentForOrder(shop.context), await paymentForOrder(shop.context)];
    shop.chain.mood = 'silent';
    await orderServer({ ...another(shop.context), keyDigest }, ORDER, first);
    const again = { ...another(shop.context), keyDigest };
    const other = { ...again, viewer: { ...again.viewer!, credentialId: 'key_2', family: 'key_2' } };
    for (const [context, input] of [
      [other, ORDER],
      [again, { ...ORDER, labels: { a: 'b' } }],
    ] as const)
      expect((await refusalOf(orderServer(context, input, second))).code).toBe('idempotency_key_reused');
  });
});
