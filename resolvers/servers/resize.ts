/** Plans a resize: checks the new tier, and charges the difference for the rest of the month. */
import { FIND_TIER, type VpsDetails } from '../../entities/catalog.ts';
import { databaseTime } from '../../entities/database/clock.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { differenceMicros } from '../../entities/money.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import type { Server } from '../../entities/servers/server.ts';
import { beginResize, type Resize } from '../../provisioning/index.ts';
import { refuseRenewals, requireSpendable, spenderOf } from '../accounts/auth/spend-limit.ts';
import type { Context } from '../context.ts';
import { unknownItem } from '../unknown.ts';
import { insufficientBalance } from './order.ts';

type Tier = NonNullable<Awaited<ReturnType<typeof FIND_TIER.first>>>;

/** @throws ApiError unknown_service_code */
export async function findTier(tx: Transaction, code: string): Promise<Tier> {
  const tier = await FIND_TIER.first(tx, [code]);
  if (!tier?.offered) throw await unknownItem(tx, 'unknown_service_code', code);
  return tier;
}

/**
 * Claims a place of the new tier, and holds the difference for the rest of the month.
 * @throws ApiError resize_not_possible, out_of_stock, spend_limit_exceeded or insufficient_balance
 */
export async function planResize(
  tx: Transaction,
  context: Context,
  server: Server,
  tier: Tier,
  { id, serviceCode }: Pick<Resize, 'id' | 'serviceCode'>,
): Promise<Resize> {
  const present = await FIND_TIER.first(tx, [server.serviceCode]);
  if (server.kind !== 'VPS' || tier.kind !== 'vps' || !present || !isLarger(tier, present))
    throw new ApiError('resize_not_possible');
  requireSameKind(tier, present);
  if (server.autoRenew && tier.priceMonthMicros > server.priceMonthMicros) refuseRenewals(context, 'rise');
  const now = await databaseTime(tx);
  const heldMicros = differenceMicros(server.priceMonthMicros, tier.priceMonthMicros, server.paidUntil!, now);
  const [balance] = await lockAccount(tx, server.accountId);
  const { availableMicros: balanceMicros, owedMicros } = balance!;
  await requireSpendable(tx, context, heldMicros);
  if (balanceMicros < heldMicros) throw insufficientBalance(heldMicros, { balanceMicros, owedMicros });
  const resize: Resize = {
    id,
    from: 'STOPPED',
    operation: 'resize',
    serviceCode,
    priceMonthMicros: String(tier.priceMonthMicros),
    heldMicros: String(heldMicros),
  };
  if (!(await beginResize(tx, server, resize, spenderOf(context)))) throw new ApiError('out_of_stock');
  return resize;
}

/** Whether a tier is larger in one dimension, and smaller in none: a smaller disk would lose data. */
function isLarger(next: Tier, present: Tier): boolean {
  const [to, from] = [next.details as VpsDetails, present.details as VpsDetails];
  const differences = (['vcpus', 'memoryMb', 'diskGb'] as const).map((name) => to[name] - from[name]);
  return differences.every((more) => more >= 0) && differences.some((more) => more > 0);
}

/** A machine stays a container, or a virtual machine, for its whole life. @throws ApiError resize_not_possible */
function requireSameKind(next: Tier, present: Tier): void {
  const [to, from] = [next.details as VpsDetails, present.details as VpsDetails];
  if (to.virtualization === from.virtualization) return;
  const detail = `The server has the virtualization ${from.virtualization}, and the tier has ${to.virtualization}.`;
  throw new ApiError('resize_not_possible', detail);
}
