/** What an order would come to, by the same checks, and without any effect. */
import { type StockLevel, stockLevel } from '../../entities/catalog.ts';
import { accountOf, type Context } from '../context.ts';
import { check, readFacts, type ServerOrder } from './order-facts.ts';

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

/** Without stock there is a quote that says so. @throws ApiError for what else could not be ordered */
export async function quoteServer(context: Context, order: ServerOrder): Promise<Quote> {
  const accountId = accountOf(context);
  const facts = await readFacts(context.db, accountId, order);
  const { tier, region } = check(order, facts, context.limits.servers, 'also without stock');
  const [priceMonthMicros, setupFeeMicros] = [BigInt(tier.priceMonthMicros), BigInt(tier.setupFeeMicros)];
  const totalMicros = priceMonthMicros + setupFeeMicros;
  const { balanceMicros } = facts;
  const stock = facts.regions.find(({ code }) => code === region);
  return {
    serviceCode: order.serviceCode,
    region,
    totalMicros,
    setupFeeMicros,
    priceMonthMicros,
    balanceMicros,
    sufficient: balanceMicros >= totalMicros,
    stock: stock ? stockLevel(stock) : 'NONE',
  };
}
