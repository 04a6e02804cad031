/** A shop that is paid by x402, on a chain that does as it is told. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { Database } from '../../../entities/database/database.ts';
import type { ApiError } from '../../../entities/errors.ts';
import { newId } from '../../../entities/ids.ts';
import type { Authorization } from '../../../provisioning/payments/drivers/x402/driver.ts';
import { SimulatedX402 } from '../../../provisioning/payments/drivers/x402/simulated.ts';
import type { Context } from '../../../resolvers/context.ts';
import type { PaymentHeaders } from '../../../resolvers/payments/x402.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { type CustomerShop, openCustomerShop } from '../../setup/customer-shop.ts';
import type { OnEnd } from '../../setup/shop.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { newPayer } from './clients.ts';

export const ORDER = { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true };
export const PRICE = 6_000_000n;

/** Moves the money, says nothing and moves nothing, refuses, or moves it and says that it did not. */
export type Mood = 'settles' | 'silent' | 'refuses' | 'lies';

export class MoodyX402 extends SimulatedX402 {
  mood: Mood = 'settles';
  /** Whether its blocks cannot be taken back. */
  safe = true;
  readonly folder: string;
  constructor(options: { folder: string }) {
    super(options);
    this.folder = options.folder;
  }

  /** Called when the chain has been asked. */
  afterSettle: () => Promise<void> | void = () => {};

  override async settle(authorization: Authorization): Promise<{ refused?: string }> {
    if (this.mood === 'refuses') return { refused: 'insufficient_funds' };
    if (this.mood !== 'silent') await super.settle(authorization);
    await this.afterSettle();
    if (this.mood === 'lies') return { refused: 'nonce_already_used' };
    return {};
  }

  override async isFinal(): Promise<boolean> {
    return this.safe;
  }

  /** A reorganisation: nothing has been moved. */
  forget(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface X402Shop extends CustomerShop {
  chain: MoodyX402;
  /** Another process, as far as one process can be another: its own pool and its own memory. */
  replica(): Promise<Context>;
}

/** The account has a balance, which no payment by x402 touches. */
export async function openX402Shop(onEnd: OnEnd): Promise<X402Shop> {
  const folder = newFolder();
  onEnd(() => removeFolder(folder));
  const chain = new MoodyX402({ folder: join(folder, 'x402') });
  const shop = await openCustomerShop(onEnd, { folder, x402: chain });
  const replica = async () => {
    const db = await Database.open(shop.url);
    onEnd(() => db.close());
    return { ...another(shop.context), db, provisioning: shop.newProvisioning({ db }) };
  };
  return { ...shop, chain, replica };
}

/** The challenge that an error carries, signed. */
export async function paymentFor(challenge: ApiError): Promise<PaymentHeaders> {
  const header = challenge.extras.headers!['payment-required']!;
  const accepted = JSON.parse(Buffer.from(header, 'base64').toString()).accepts[0];
  const { payload } = await new ExactEvmScheme(newPayer()).createPaymentPayload(2, accepted);
  return { signature: encodePaymentSignatureHeader({ x402Version: 2, accepted, payload } as never) };
}

/** A signed payment for one order. */
export async function paymentForOrder(context: Context): Promise<PaymentHeaders> {
  return paymentFor(await refusalOf(orderServer(context, ORDER, { mode: 'X402' })));
}

export const refusalOf = (refused: Promise<unknown>): Promise<ApiError> =>
  refused.then(
    () => Promise.reject(new Error('It was not refused.')),
    (error) => error,
  );

/** Somebody has the chain move all that there is. */
export const settleOnChain = async ({ db, chain }: X402Shop) => {
  const payments = await db.query<{ payer: `0x${string}`; nonce: `0x${string}` }>(
    'select payer, nonce from x402_payment',
  );
  chain.mood = 'settles';
  for (const { payer, nonce } of payments) await chain.settle({ from: payer, nonce } as never);
};

/** The chain moves none of what it has not moved. */
export const expireAuthorizations = ({ db }: X402Shop) => db.query('update x402_payment set valid_before = now()');

export const another = (context: Context): Context => ({ ...context, requestId: newId('req') });
