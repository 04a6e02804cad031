/** Whether a server can have another tier, and what that costs for the rest of the month. */
import type { VpsDetails } from '../../entities/catalog.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { differenceMicros } from '../../entities/money.ts';
import { lockAvailable } from '../../entities/payments/ledger.ts';
import type { Server } from '../../entities/servers/server.ts';
import { beginResize, type Resize } from '../../provisioning/index.ts';
import { requireSpendable, spendingKey } from '../accounts/auth/spend-limit.ts';
import type { Context } from '../context.ts';
import { insufficientBalance } from './order.ts';

export interface Tier {
  kind: 'vps' | 'dedicated';
  priceMonthMicros: bigint;
  details: VpsDetails;
}

/** @throws ApiError unknown_service_code */
export async function findTier(tx: Transaction, code: string): Promise<Tier> {
  const [tier] = await tx.query<Tier>(`${TIER} and offered`, [code]);
  if (!tier) throw new ApiError('unknown_service_code');
  return tier;
}
const TIER = `
  select kind, price_month_micros, details from catalog_item
  where code = $1 and kind in ('vps', 'dedicated')`;

/**
 * Claims the place and holds the difference for the rest of the month.
 * @throws ApiError resize_not_possible, out_of_stock, spend_limit_exceeded or insufficient_balance
 */
export async function planResize(
  tx: Transaction,
  context: Context,
  server: Server,
  tier: Tier,
  { id, serviceCode }: Pick<Resize, 'id' | 'serviceCode'>,
): Promise<Resize> {
  const [present] = await tx.query<Tier>(TIER, [server.serviceCode]);
  if (server.kind !== 'VPS' || tier.kind !== 'vps' || !present || !isLarger(tier.details, present.details))
    throw new ApiError('resize_not_possible');
  const heldMicros = differenceMicros(server.priceMonthMicros, tier.priceMonthMicros, server.paidUntil!, new Date());
  const balanceMicros = await lockAvailable(tx, server.accountId);
  await requireSpendable(tx, context, heldMicros);
  if (balanceMicros < heldMicros) throw insufficientBalance(heldMicros, balanceMicros);
  const resize: Resize = {
    id,
    from: 'STOPPED',
    operation: 'resize',
    serviceCode,
    priceMonthMicros: String(tier.priceMonthMicros),
    heldMicros: String(heldMicros),
  };
  if (!(await beginResize(tx, server, resize, spendingKey(context)))) throw new ApiError('out_of_stock');
  return resize;
}

/** Larger in something and smaller in nothing: a disk that shrinks would lose what is on it. */
function isLarger(next: VpsDetails, present: VpsDetails): boolean {
  const pairs = (['vcpus', 'memoryMb', 'diskGb'] as const).map((name) => next[name] - present[name]);
  return pairs.every((more) => more >= 0) && pairs.some((more) => more > 0);
}
