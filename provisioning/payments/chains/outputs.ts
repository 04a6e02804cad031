/**
 * Joins the outputs of one transaction to one address in one coin to one payment. So a payer cannot make much work by
 * splitting a payment into many small outputs.
 */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { FIND_KNOWN } from '../../../entities/payments/observed-payment.ts';
import type { ObservedPayment } from '../drivers/driver.ts';

/**
 * Joins the outputs that a chain shows. A joined payment has the position of its first output. An earlier version wrote each
 * output, so the service keeps what it knows, and joins the rest. If it knows more than the outputs have, the transaction has
 * another outcome than before: a payment of its own.
 * @throws Error if an output occurs twice
 */
export async function joinOutputs(
  db: Queryable,
  network: string,
  payments: readonly ObservedPayment[],
): Promise<ObservedPayment[]> {
  const groups = [...Map.groupBy(payments, ({ txId, coin, address }) => `${txId} ${coin} ${address}`).values()];
  const several = groups.filter(({ length }) => length > 1);
  if (!several.length) return [...payments];
  const outputs = several.flat();
  if (new Set(outputs.map(({ txId, position }) => `${txId} ${position}`)).size < outputs.length)
    throw new Error(`A node of ${network} reports a payment twice.`);
  const wholes = new Map(several.map((group) => [group, { ...firstOf(group), units: sumOf(group) }]));
  const known = await knownOf(db, network, [...outputs, ...wholes.values()]);
  return groups.flatMap((group) => {
    const whole = wholes.get(group);
    if (!whole) return group;
    const kept = group.filter((one) => known.has(one)).map((one) => ({ ...one, units: known.get(one)! }));
    const fresh = group.filter((one) => !known.has(one));
    const rest = whole.units - sumOf(kept);
    if (known.get(whole) === whole.units || !kept.length || rest < 0n || (rest > 0n && !fresh.length)) return [whole];
    return rest > 0n ? [...kept, { ...firstOf(fresh), units: rest }] : kept;
  });
}

/** The units with which the service knows each of these payments. */
async function knownOf(db: Queryable, network: string, payments: readonly ObservedPayment[]) {
  const given = payments.map(({ units, ...payment }, place) => ({ ...payment, place, units: String(units) }));
  const rows = await FIND_KNOWN.all(db, [JSON.stringify(given), network]);
  return new Map(rows.map(({ place, units }) => [payments[place]!, BigInt(units)]));
}

const sumOf = (outputs: readonly ObservedPayment[]): bigint => outputs.reduce((sum, { units }) => sum + units, 0n);
const firstOf = (outputs: readonly ObservedPayment[]): ObservedPayment =>
  outputs.reduce((first, one) => (one.position < first.position ? one : first));
