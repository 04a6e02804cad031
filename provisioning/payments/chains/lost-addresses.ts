/**
 * The deposit addresses that a lost time may have given out. After the operator has restored an older database, no top-up has them, and
 * customers may still pay there.
 */
import { setImmediate as pause } from 'node:timers/promises';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { recordAll } from '../../../entities/history/record.ts';
import { LIST_LOST_DEPOSITS, type LostDeposit } from '../../../entities/payments/deposit.ts';
import { FIND_DEPOSIT_ADDRESSES } from '../../../entities/payments/top-up.ts';
import type { ObservedPayment, PaymentDriver } from '../drivers/driver.ts';

/** Addresses of one pause. Each one costs up to a millisecond, in which no other work goes on. */
const ADDRESSES_AT_ONCE = 20;
/** The lost numbers of a range whose addresses the service watches. */
const WATCHED_MAX = 10_000;

export interface LostAddress {
  /** As the driver spells it. */
  address: string;
  /** The number of the deposit. */
  deposit: number;
}
/** By the address in lower case. */
export type LostAddressMap = ReadonlyMap<string, LostAddress>;

/** Derives the addresses of one driver once. */
export class LostAddresses {
  readonly #driver: PaymentDriver;
  /** The first numbers of the ranges that it has derived. */
  readonly #derived = new Set<number>();
  readonly #addresses = new Map<string, LostAddress>();

  constructor(driver: PaymentDriver) {
    this.#driver = driver;
  }

  /** All lost addresses of the driver. */
  async read(db: Queryable): Promise<LostAddressMap> {
    const [coin] = this.#driver.coins();
    const source = coin && this.#driver.depositSource?.(coin.code);
    if (source === undefined) return new Map();
    const ranges = await LIST_LOST_DEPOSITS.all(db, [source]);
    for (const range of ranges) if (!this.#derived.has(range.first)) await this.#derive(coin!.code, range);
    return this.#addresses;
  }

  async #derive(coin: string, { first, beyond }: LostDeposit): Promise<void> {
    const now = new Date();
    const invoice = { orderNumber: 'none', coin, amountCrypto: '1', amountMicros: 1n, createdAt: now, expiresAt: now };
    for (let deposit = first; deposit < Math.min(beyond, first + WATCHED_MAX); deposit++) {
      const { walletAddress: address } = await this.#driver.open(invoice, deposit, AbortSignal.abort());
      this.#addresses.set(address.toLowerCase(), { address, deposit });
      if (deposit % ADDRESSES_AT_ONCE === 0) await pause();
    }
    this.#derived.add(first);
  }
}

/** Tells the operator of payments to lost addresses. The operator names their account by `creditTransaction`. */
export async function tellLost(
  tx: Transaction,
  network: string,
  payments: readonly ObservedPayment[],
  lost: LostAddressMap,
): Promise<void> {
  const unowned = await unownedOf(tx, payments, lost);
  await recordAll(
    tx,
    unowned.map(({ txId, coin, address, units }) => ({
      ...{ accountId: OPERATOR_ACCOUNT, subject: txId, actor: SYSTEM, type: 'payment.lost' },
      data: { network, coin, address, units: String(units) },
    })),
  );
}

/** The payments to lost addresses that no top-up has. */
export async function unownedOf(
  db: Queryable,
  payments: readonly ObservedPayment[],
  lost: LostAddressMap,
): Promise<ObservedPayment[]> {
  const toLost = payments.filter(({ address }) => lost.has(address.toLowerCase()));
  if (!toLost.length) return [];
  const rows = await FIND_DEPOSIT_ADDRESSES.all(db, [toLost.map(({ address }) => address.toLowerCase())]);
  const owned = new Set(rows.map(({ walletAddress }) => walletAddress.toLowerCase()));
  return toLost.filter(({ address }) => !owned.has(address.toLowerCase()));
}
