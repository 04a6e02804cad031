/** The steps of the operator: decisions about payments, adjustments, payouts and sweeps. */
import { SYSTEM } from '../../../entities/history/audit.ts';
import { FIND_PAYABLE_UNITS } from '../../../entities/payments/movement.ts';
import { payableMicros } from '../../../entities/payments/payable.ts';
import type { Payment, PaymentStatus } from '../../../entities/payments/payment.ts';
import type { Payout, PayoutStatus } from '../../../entities/payments/payout.ts';
import { importSent } from '../../../provisioning/payments/wallet/import.ts';
import { exportPayouts } from '../../../provisioning/payments/wallet/payouts.ts';
import { finishShown } from '../../../provisioning/payments/wallet/shown.ts';
import { accountOf } from '../../../resolvers/context.ts';
import { adjustBalance } from '../../../resolvers/payments/adjustments.ts';
import { assign, creditTransaction, giveBack, writeOff } from '../../../resolvers/payments/payments.ts';
import { cancel, finish, move, refundInCoin, returnInCoin } from '../../../resolvers/payments/payouts.ts';
import { CHAIN_COIN } from './coin-chain.ts';
import type { Step } from './step.ts';
import { type Doing, networkOf, pick, type Town } from './town.ts';

/** An address of a customer, in a form that each network takes. */
const ADDRESS = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const reason = 'The walk wants it';

const paymentOf = async ({ shop }: Town, step: Step, ...statuses: PaymentStatus[]) =>
  pick(
    step,
    await shop.db.query<Payment>(
      `select * from (select * from payment where status = any($1) order by id desc limit 8) as latest`,
      [statuses],
    ),
  );
const payoutsOf = ({ shop }: Town, ...statuses: PayoutStatus[]) =>
  shop.db.query<Payout>(`select * from payout where status = any($1) order by id desc limit 8`, [statuses]);

/** Sends the coins of a payment or payout once. @returns the transaction */
function sendCoins(town: Town, id: string, network: string, coin: string, units: bigint): string {
  town.sent.set(id, { network, coin, units });
  return networkOf(town, network)?.chain.pay(ADDRESS, units, { coin }).txId ?? town.names.next().value;
}

export const OPERATOR: Doing<
  | 'assign'
  | 'writeOff'
  | 'giveBack'
  | 'adjust'
  | 'payOut'
  | 'sendBack'
  | 'export'
  | 'broadcast'
  | 'finish'
  | 'cancelPayout'
  | 'sweep'
  | 'lookUp'
> = {
  assign: async (town, step) => {
    const one = await paymentOf(town, step, 'UNMATCHED');
    if (!one) return;
    const own = one.mode === 'X402' ? one.accountId : null;
    const accountId = step.isOther ? accountOf(town.contexts[step.who]!) : own;
    return assign(town.contexts[0]!, one.id, { accountId, status: one.status, reason });
  },
  writeOff: async (town, step) => {
    const one = await paymentOf(town, step, 'UNMATCHED', 'REVERSED');
    return one && writeOff(town.contexts[0]!, one.id, reason);
  },
  giveBack: async (town, step) => {
    const one = await paymentOf(town, step, 'UNMATCHED');
    if (!one) return;
    const { id, network, coin, units } = one;
    await giveBack(town.contexts[0]!, id, { returnTxId: town.names.next().value, reason });
    sendCoins(town, id, network, coin, BigInt(units));
  },
  adjust: ({ contexts, names }, { who, usd }) => {
    const accountId = accountOf(contexts[who]!);
    const amountMicros = BigInt(usd) * 1_000_000n;
    return adjustBalance(contexts[0]!, { accountId, amountMicros, reason, key: names.next().value });
  },
  payOut: async (town, { who, crypto, percent }) => {
    const accountId = accountOf(town.contexts[who]!);
    const payable = await payableMicros(town.shop.db, accountId);
    return refundInCoin(town.contexts[0]!, {
      ...{ accountId, coin: crypto, amountUsd: (payable * BigInt(percent)) / 100n, reason },
      ...{ key: town.names.next().value, address: ADDRESS },
      ...(crypto === CHAIN_COIN.code && { source: `gateway:x402:${CHAIN_COIN.network}` }),
    });
  },
  sendBack: async (town, step) => {
    const one = await paymentOf(town, step, 'UNMATCHED');
    const key = town.names.next().value;
    return one && returnInCoin(town.contexts[0]!, { paymentId: one.id, key, address: ADDRESS, reason });
  },
  export: ({ shop }) => exportPayouts(shop.db, SYSTEM),
  broadcast: async (town, step) => {
    const one = pick(step, await payoutsOf(town, 'EXPORTED'));
    if (!one) return;
    const { id, network, coin, units } = one;
    await importSent(town.shop.db, [{ id, txId: sendCoins(town, id, network, coin, BigInt(units)) }], SYSTEM);
  },
  finish: async (town, step) => {
    const { shop, contexts, drivers, networks } = town;
    await sendAgain(town);
    await finishShown(shop.db, drivers, SYSTEM, contexts[0]!.signal);
    // No driver tells about the network of x402, so the operator looks there.
    const one = pick(step, await payoutsOf(town, 'BROADCAST'));
    return one && !networks.some(({ network }) => network === one.network) && finish(contexts[0]!, one.id);
  },
  cancelPayout: async (town, step) => {
    const one = pick(step, await payoutsOf(town, 'REQUESTED', 'EXPORTED'));
    // A crash may have lost the transaction that the operator has sent.
    return one && step.which % 3 === 0 && !town.sent.has(one.id) && cancel(town.contexts[0]!, one.id, reason);
  },
  sweep: async (town, { crypto, percent, isFee }) => {
    const network = crypto === 'TST' ? 'testnet' : 'tagged';
    const source = `gateway:${network}`;
    const held = BigInt((await FIND_PAYABLE_UNITS.first(town.shop.db, [source, crypto]))!.units);
    const units = String((held * BigInt(percent)) / 100n);
    const target = isFee ? 'fees' : `wallet:${network}`;
    const amountMicros = null;
    return move(town.contexts[0]!, {
      source,
      target,
      coin: crypto,
      units,
      txId: town.names.next().value,
      amountMicros,
    });
  },
  lookUp: async ({ contexts, networks }, step) => {
    const { network, chain } = networks[step.network]!;
    const one = pick(step, chain.blocks.flatMap(({ payments }) => payments).slice(-20));
    return one && creditTransaction(contexts[0]!, { network, txId: one.txId, reason });
  },
};

/** Replaces the transactions of payouts that a reorganisation has lost. */
async function sendAgain(town: Town): Promise<void> {
  for (const { id, network, coin, units, txId } of await payoutsOf(town, 'BROADCAST')) {
    const on = networkOf(town, network);
    if (!on || [...on.payments(), ...on.chain.pool].some((one) => one.txId === txId)) continue;
    const sent = [{ id, txId: sendCoins(town, id, network, coin, BigInt(units)) }];
    await importSent(town.shop.db, sent, SYSTEM, { drivers: town.drivers, signal: town.contexts[0]!.signal });
  }
}
