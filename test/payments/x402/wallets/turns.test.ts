/** The service verifies payments of customers while free accounts send what a slow node has to verify. */
import { expect, it, onTestFinished } from 'vitest';
import type { Context } from '../../../../resolvers/context.ts';
import { createTopUp } from '../../../../resolvers/payments/billing.ts';
import { eventually } from '../../../setup/freehold.ts';
import { contextOf } from '../../../setup/shop.ts';
import { newPayer } from '../clients.ts';
import { holdVerifications, openX402Shop, paymentFor, refusalOf } from '../shop.ts';

const topUp = { amountUsd: 30_000_000n };

it('A customer is verified at once while twenty free accounts wait for a slow node', async () => {
  const shop = await openX402Shop(onTestFinished);
  const { verifying, verify } = holdVerifications(shop);
  const payBy = async (context: Context, payer = newPayer()) => {
    const challenge = await refusalOf(createTopUp(context, topUp, { mode: 'X402' }));
    const payment = await paymentFor(challenge, payer);
    return createTopUp(context, topUp, payment);
  };
  const free = Array.from({ length: 20 }, async (_, n) => {
    const context = contextOf(shop, await shop.account(0n));
    return payBy({ ...context, address: `198.51.100.${n}` });
  });
  await eventually(async () => verifying.length >= 2);
  const payer = newPayer();
  const paid = payBy({ ...shop.context, address: '203.0.113.7' }, payer);
  await eventually(async () => verifying.includes(payer.address));
  expect(verifying.length).toBeLessThanOrEqual(9);
  verify(undefined);
  await Promise.all([...free, paid]);
});
