/** Quotes the price of an order, by the checks of an order and without any effect. */
import { type StockLevel, stockLevel } from '../../entities/catalog.ts';
import { renewalOf } from '../accounts/auth/spend-limit.ts';
import { accountOf, type Context } from '../context.ts';
import { check, priceOf, readFacts, type ServerOrder } from './order-facts.ts';

export interface Quote {
  serviceCode: string;
  region: string;
  totalMicros: bigint;
  setupFeeMicros: bigint;
  priceMonthMicros: bigint;
  balanceMicros: bigint;
  sufficient: boolean;
  stock: StockLevel;
}

/** Quotes an order, even one that is out of stock. @throws ApiError for all other reasons of a refusal */
export async function quoteServer(context: Context, order: ServerOrder): Promise<Quote> {
  renewalOf(context, order.autoRenew);
  const facts = await readFacts(context.db, accountOf(context), order);
  const { tier, region } = await check(context.db, context, order, facts, 'also without stock');
  const { balanceMicros } = facts;
  const totalMicros = priceOf(tier);
  const stock = facts.regions.find(({ code }) => code === region);
  return {
    serviceCode: order.serviceCode,
    region,
    totalMicros,
    setupFeeMicros: BigInt(tier.setupFeeMicros),
    priceMonthMicros: BigInt(tier.priceMonthMicros),
    balanceMicros,
    sufficient: balanceMicros >= totalMicros,
    stock: stock ? stockLevel(stock) : 'NONE',
  };
}
