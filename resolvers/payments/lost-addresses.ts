/** Top-ups at addresses that a lost time gave out: the operator names the account of a payment there. */
import { insert } from '../../entities/database/table.ts';
import { ApiError } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { newId, newOrderNumber } from '../../entities/ids.ts';
import { microsFromUsd } from '../../entities/money.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { TOP_UP_MIN_USD, TopUp } from '../../entities/payments/top-up.ts';
import { type ClaimLost, formatUnits, unitsOf } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { findCoin } from './coins.ts';

/**
 * Returns a function that writes an ended top-up of the account at a lost address. So the payment counts as a late one, at the rate
 * of now, without a bonus of the lost time.
 */
export const claimFor =
  (context: Context, accountId: string): ClaimLost =>
  async (tx, { coin: code }, { address, deposit }) => {
    const coin = await findCoin(context, code);
    if (coin.rateMicros === null) throw new ApiError('coin_unavailable');
    const amountMicros = microsFromUsd(TOP_UP_MIN_USD);
    const now = new Date();
    const orderNumber = newOrderNumber('TOP');
    await lockAccount(tx, accountId);
    await insert(tx, TopUp, {
      ...{ id: newId('top'), accountId, orderNumber, amountMicros, bonusMicros: 0n, deposit },
      ...{ status: 'EXPIRED', mode: 'CRYPTO', crypto: coin.code, network: coin.network, walletAddress: address },
      ...{ rateMicros: coin.rateMicros, receivedCrypto: '0', creditedMicros: 0n, confirmations: 0 },
      amountCrypto: formatUnits(unitsOf(amountMicros, coin.rateMicros, coin.decimals), coin.decimals),
      confirmationsRequired: coin.confirmationsRequired,
      ...{ createdAt: now, expiresAt: now },
    });
    await record(tx, accountId, orderNumber, { type: 'topup.expired', actor: actorOf(context) });
    tx.changed({ kind: 'topUp', accountId, id: orderNumber });
    await context.provisioning.payments.awaitPayment(tx, accountId, orderNumber, coin.code);
  };
