/** Compares the coins of each gateway in the books with those on its chain. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { gateway } from '../../../entities/payments/ledger.ts';
import { FIND_PENDING_UNITS, LIST_DEPOSIT_ADDRESSES, LIST_HOLDINGS } from '../../../entities/payments/movement.ts';
import type { PaymentDriver } from '../drivers/driver.ts';
import type { X402Driver } from '../drivers/x402/driver.ts';

export interface Compared {
  /** The ledger account of the gateway. */
  name: string;
  coin: string;
  bookedUnits: bigint;
  /** Undefined: no driver can tell, or its node did not answer. */
  chainUnits: bigint | undefined;
  /** Units of payments that may still come, and of payouts that may have left. */
  pendingUnits: { in: bigint; out: bigint };
  /** The reason why a driver that can tell did not. */
  fault?: string;
}

/** The units that the books lack; negative: those that the chain lacks. Undefined: the chain did not tell. */
export const differenceOf = ({ chainUnits, bookedUnits }: Compared): bigint | undefined =>
  chainUnits === undefined ? undefined : chainUnits - bookedUnits;

/**
 * RIGHT: the chain has the same units. PENDING: payments and payouts under way explain the difference. WRONG: they do not.
 * UNKNOWN: no driver can tell. SILENT: a driver can tell, and its node did not answer.
 */
export type Verdict = 'RIGHT' | 'PENDING' | 'WRONG' | 'UNKNOWN' | 'SILENT';

export function verdictOf(compared: Compared): Verdict {
  const difference = differenceOf(compared);
  if (difference === undefined) return compared.fault === undefined ? 'UNKNOWN' : 'SILENT';
  if (difference === 0n) return 'RIGHT';
  const { in: coming, out: leaving } = compared.pendingUnits;
  return difference >= -leaving && difference <= coming ? 'PENDING' : 'WRONG';
}

/** Reads the units of each coin. Undefined: the driver cannot tell. */
type ReadUnits = () => Promise<ReadonlyMap<string, bigint> | undefined>;

/** Compares each gateway in the order of the names of the ledger accounts. A gateway without coins is compared as well. */
export async function reconcile(
  db: Queryable,
  { payments, x402 }: { payments: readonly PaymentDriver[]; x402?: X402Driver | undefined },
  signal: AbortSignal,
): Promise<Compared[]> {
  const readers = new Map<string, { coins: string[]; read: ReadUnits }>();
  for (const driver of payments)
    for (const { network, nodes } of driver.chains ?? []) {
      const coins = driver.coins().flatMap((coin) => (coin.network === network ? [coin.code] : []));
      const read: ReadUnits = async () => {
        const addresses = (await LIST_DEPOSIT_ADDRESSES.all(db, [network])).map(({ address }) => address);
        return nodes.ask(signal, async (node) => node.balances?.(addresses, signal));
      };
      readers.set(gateway(network), { coins, read });
    }
  if (x402?.payeeBalance) {
    const { coin, network } = x402.terms;
    const read: ReadUnits = async () => new Map([[coin, await x402.payeeBalance!()]]);
    readers.set(gateway(`x402:${network}`), { coins: [coin], read });
  }
  const holdings = (await LIST_HOLDINGS.all(db)).filter(({ name }) => name.startsWith('gateway:'));
  const names = new Set([...readers.keys(), ...holdings.map(({ name }) => name)]);
  const compared: Compared[] = [];
  for (const name of [...names].sort()) {
    const { coins = [], read } = readers.get(name) ?? {};
    const own = holdings.filter((holding) => holding.name === name);
    const units = await read?.().catch((fault: Error) => fault);
    for (const coin of new Set([...coins, ...own.map((holding) => holding.coin)])) {
      const pending = (await FIND_PENDING_UNITS.first(db, [name, coin]))!;
      const isFault = units instanceof Error;
      compared.push({
        ...{ name, coin },
        bookedUnits: BigInt(own.find((holding) => holding.coin === coin)?.units ?? 0),
        chainUnits: isFault ? undefined : units?.get(coin),
        pendingUnits: { in: BigInt(pending.incoming), out: BigInt(pending.outgoing) },
        ...(isFault && { fault: units.message }),
      });
    }
  }
  return compared;
}
