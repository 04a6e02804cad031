/** Free accounts of one site take turns, however much work each of them has. */
import { setImmediate as tick } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { CustomerTurns } from '../../../../entities/turns.ts';
import { createTopUp } from '../../../../resolvers/payments/billing.ts';
import { orderServer } from '../../../../resolvers/servers/order.ts';
import { eventually } from '../../../setup/freehold.ts';
import { contextOf } from '../../../setup/shop.ts';
import { newPayer } from '../clients.ts';
import { holdVerifications, openX402Shop, paymentFor, refusalOf } from '../shop.ts';

/** Work of free accounts of one site, which lasts until the test ends it. */
function heldWork() {
  const limits = { places: 16, placesOfGroup: 2, placesOfSite: 2, waiting: 200, waitingOfGroup: 24, refusal: 'Wait.' };
  const turns = new CustomerTurns(limits);
  const begun: string[] = [];
  const running: (() => void)[] = [];
  const work = (accountId: string) =>
    turns.run({ accountId, address: '198.51.100.7', hasPaid: false }, () => {
      begun.push(accountId);
      return new Promise<void>((resolve) => running.push(resolve));
    });
  return { begun, running, work };
}

it('A neighbour gets a turn beside thirteen free accounts that always have more work', async () => {
  const { begun, running, work } = heldWork();
  const always = async (accountId: string): Promise<void> => {
    await work(accountId);
    if (!begun.includes('neighbour')) return always(accountId);
  };
  const accounts = Array.from({ length: 13 }, (_, n) => `account ${n}`);
  const flood = accounts.flatMap((accountId) => [always(accountId), always(accountId), always(accountId)]);
  await tick();
  const neighbour = work('neighbour');
  neighbour.catch(() => {});
  let ended = 0;
  for (; !begun.includes('neighbour') && ended < 100; ended++) {
    running.shift()!();
    await tick();
  }
  expect(ended).toBeLessThanOrEqual(accounts.length);
  const all = Promise.all([...flood, neighbour]);
  for (let isOver = false; !isOver; await tick()) {
    for (const end of running.splice(0)) end();
    isOver = await Promise.race([all.then(() => true), tick(false)]);
  }
});

it('A neighbour gets a turn although 205 accounts of its site refill the queue after their first turn', async () => {
  const { begun, running, work } = heldWork();
  const end = async () => {
    running.shift()!();
    await tick();
  };
  const accounts = Array.from({ length: 205 }, (_, n) => `account ${n}`);
  for (const account of accounts) {
    const turn = work(account);
    await tick();
    await end();
    await turn;
  }
  const flood = Promise.allSettled(accounts.map(work));
  await tick();
  const neighbour = work('neighbour');
  await expect(work(accounts[204]!)).rejects.toMatchObject({ code: 'rate_limited' });
  await end();
  expect(begun.at(-1)).toBe('neighbour');
  for (let isOver = false; !isOver; await tick()) {
    for (const finish of running.splice(0)) finish();
    isOver = await Promise.race([flood.then(() => true), tick(false)]);
  }
  await neighbour;
});

it('The refusal of a sale ends the wait of its payment for a verification', async () => {
  const shop = await openX402Shop(onTestFinished);
  const { verifying, verify } = holdVerifications(shop);
  const newcomer = async () => ({ ...contextOf(shop, await shop.account(0n)), address: '198.51.100.7' });
  const topUp = { amountUsd: 30_000_000n };
  const pay = async () => {
    const context = await newcomer();
    const payment = await paymentFor(await refusalOf(createTopUp(context, topUp, { mode: 'X402' })), newPayer());
    return { context, payment };
  };
  const first = [await pay(), await pay()].map(({ context, payment }) => createTopUp(context, topUp, payment));
  await eventually(async () => verifying.length === 2);
  const { context, payment } = await pay();
  const order = { serviceCode: 'vps-none', os: 'debian-13' };
  await expect(orderServer(context, order, payment)).rejects.toMatchObject({ code: 'unknown_service_code' });
  verify(undefined);
  await Promise.all(first);
  const last = await pay();
  await createTopUp(last.context, topUp, last.payment);
  expect(verifying).toHaveLength(3);
});
