/** Sweeps and fees that the operator records. */
import { find, insert } from '../../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../../entities/errors.ts';
import { type Actor, OPERATOR_ACCOUNT } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { newId } from '../../../entities/ids.ts';
import { FEES, lockOperator, post } from '../../../entities/payments/ledger.ts';
import { costOf, FIND_HOLDING, FIND_OVERDRAWN, Movement } from '../../../entities/payments/movement.ts';
import { CHAIN_TEXT } from '../../../entities/payments/payout.ts';

export interface GivenMovement extends Pick<Movement, 'source' | 'target' | 'coin' | 'units' | 'txId'> {
  /** Its cost in micro-USD, where the books do not know it. */
  amountMicros: bigint | null;
}

const HOLDER = /^(gateway|wallet):\S+$/;

/** Whether coins that leave a gateway are more than those that came, or that are final there. The operator is locked. */
export const isOverdrawn = async (tx: Queryable, source: string, coin: string): Promise<boolean> =>
  (await FIND_OVERDRAWN.first(tx, [source, coin])) !== undefined;

/**
 * Records coins that the operator has moved, at their average cost. Recording them again changes nothing.
 * @throws ApiError validation_failed, also if a gateway has fewer coins; or idempotency_key_reused if the transaction has moved another amount there
 */
export async function recordMovement(tx: Transaction, given: GivenMovement, actor: Actor): Promise<Movement> {
  const { source, target, coin, units } = given;
  // Tools spell hexadecimal transactions in any case, with and without a prefix.
  const txId = /^(0x)?[0-9a-f]+$/i.test(given.txId) ? given.txId.toLowerCase() : given.txId;
  if (!CHAIN_TEXT.test(txId)) throw refuse('txId', 'wrong_value', 'txId is the transaction as its chain writes it.');
  if (!HOLDER.test(source))
    throw refuse('source', 'wrong_value', 'source is a gateway or a wallet, such as gateway:bitcoin.');
  if (target !== FEES && (!HOLDER.test(target) || target === source))
    throw refuse('target', 'wrong_value', 'target is fees, or another gateway or wallet, such as wallet:bitcoin.');
  if (!/^[1-9][0-9]{0,77}$/.test(units)) throw refuse('units', 'wrong_value', 'units is a whole number above 0.');
  await lockOperator(tx);
  const other = txId.startsWith('0x') ? txId.slice(2) : `0x${txId}`;
  const same = { source, target, coin };
  const known = (await find(tx, Movement, { ...same, txId })) ?? (await find(tx, Movement, { ...same, txId: other }));
  if (known && known.units !== units) throw new ApiError('idempotency_key_reused');
  if (known) return known;
  const holding = await FIND_HOLDING.first(tx, [source, coin]);
  const few = refuse(
    'source',
    'wrong_value',
    `${source} has fewer units of ${coin} in the books, less those of open payouts.`,
  );
  if (source.startsWith('gateway:') && BigInt(holding?.units ?? 0) < BigInt(units)) throw few;
  const cost = costOf(holding, BigInt(units)) ?? given.amountMicros;
  if (cost === null || cost < 0n)
    throw refuse(
      'amountUsd',
      'wrong_value',
      `The books do not know the cost of these coins in ${source}. Give it as amountUsd.`,
    );
  const id = newId('mov');
  await insert(tx, Movement, { ...{ source, target, coin, units, txId }, id, amountMicros: cost });
  if (await isOverdrawn(tx, source, coin)) throw few;
  await post(tx, OPERATOR_ACCOUNT, {
    ...{ kind: 'adjustment', debit: target, credit: source, amountMicros: cost },
    ...{ externalKey: `movement:${id}`, description: target === FEES ? `Fee in ${coin}` : `Sweep of ${coin}` },
  });
  const data = { source, target, coin, units, txId };
  await record(tx, OPERATOR_ACCOUNT, id, { type: 'movement.recorded', actor, data });
  return (await find(tx, Movement, { id }))!;
}
