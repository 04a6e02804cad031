/** A shop with x402 payments, on a chain with behaviour of the test. */
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
import type { PaymentHeaders } from '../../../resolvers/payments/sale.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { type CustomerShop, openCustomerShop } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import type { OnEnd } from '../../setup/spawn.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { newPayer } from './clients.ts';

export const ORDER = { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true };
export const PRICE = 6_000_000n;

/** Settles; moves nothing without an answer; refuses; or settles and reports a failure. */
export type Mood = 'settles' | 'silent' | 'refuses' | 'lies';

export class MoodyX402 extends SimulatedX402 {
  mood: Mood = 'settles';
  /** Whether its blocks are safe from reorganisations. */
  safe = true;
  readonly folder: string;
  constructor(options: { folder: string }) {
    super(options);
    this.folder = options.folder;
  }

  /** Runs after the settlement. */
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

  /** Reorganises the chain, so that it has moved nothing. */
  forget(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface X402Shop extends CustomerShop {
  chain: MoodyX402;
  /** Returns the context of another replica, with its own pool and its own memory. */
  replica(): Promise<Context>;
}

/** Opens a shop whose account has a balance, which no x402 payment touches. */
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

/** Signs the challenge of an error. */
export async function paymentFor(challenge: ApiError, payer = newPayer()): Promise<PaymentHeaders> {
  const header = challenge.extras.headers!['payment-required']!;
  const accepted = JSON.parse(Buffer.from(header, 'base64').toString()).accepts[0];
  const { payload } = await new ExactEvmScheme(payer).createPaymentPayload(2, accepted);
  return { signature: encodePaymentSignatureHeader({ x402Version: 2, accepted, payload } as never) };
}

/** Returns a signed payment for one order. */
export async function paymentForOrder(context: Context, payer = newPayer()): Promise<PaymentHeaders> {
  return paymentFor(await refusalOf(orderServer(context, ORDER, { mode: 'X402' })), payer);
}

export const refusalOf = (refused: Promise<unknown>): Promise<ApiError> =>
  refused.then(
    () => Promise.reject(new Error('The order was not refused.')),
    (error) => error,
  );

/** Settles all payments on the chain without the service. */
export const settleOnChain = async ({ db, chain }: X402Shop) => {
  const payments = await db.query<{ payer: `0x${string}`; nonce: `0x${string}` }>(
    'select payer, nonce from x402_authorization',
  );
  chain.mood = 'settles';
  for (const { payer, nonce } of payments) await chain.settle({ from: payer, nonce } as never);
};

/** Expires every authorization that the chain has not used. */
export const expireAuthorizations = ({ db }: X402Shop) =>
  db.query('update x402_authorization set valid_before = now()');

export const another = (context: Context): Context => ({ ...context, requestId: newId('req') });

/** Runs workers until all payments are final. */
export async function reconcile({ db, provisioning }: X402Shop, status: 'FINAL' | 'DROPPED'): Promise<void> {
  // Makes the checks of the chain due now.
  await db.query(`update task set run_at = now() where process = 'x402'`);
  const worker = provisioning.newWorker({ leaseSeconds: 1 });
  worker.start();
  await eventually(async () => {
    const [left] = await db.query<{ open: number; tasks: number }>(
      `select (select count(*)::int from payment where status <> $1) as open, (select count(*)::int from task) as tasks`,
      [status],
    );
    return left!.open + left!.tasks === 0;
  });
  await worker.stop();
}

/** Lets verifications wait until `verify`. `verifying` has the payers of those that have begun. */
export function holdVerifications({ chain }: { chain: MoodyX402 }) {
  const { promise: verified, resolve: verify } = Promise.withResolvers<undefined>();
  const verifying: string[] = [];
  chain.verify = ({ from }) => {
    verifying.push(from);
    return verified;
  };
  return { verifying, verify };
}
