/** The cost of an order by x402 for the database. */
import { expect, it } from 'vitest';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { queriesOf } from '../../setup/queries.ts';
import { another, ORDER, openX402Shop, paymentForOrder } from './shop.ts';

it('An order by x402 takes ten statements in one transaction, without a savepoint', async ({ onTestFinished }) => {
  const shop = await openX402Shop(onTestFinished);
  await orderServer(shop.context, ORDER, await paymentForOrder(shop.context));
  const payment = await paymentForOrder(shop.context);
  const queries = await queriesOf(shop.db, () => orderServer(another(shop.context), ORDER, payment));
  const control = /^(start transaction|commit|select pg_notify|listen)/i;
  const statements = queries.map(({ text }) => text.trim()).filter((text) => !control.test(text));
  expect(statements, statements.join('\n')).toHaveLength(10);
  // Before any coin moves, the database says whether the credential is open and the account not suspended.
  expect(statements[1]).toContain('suspended_for');
});
