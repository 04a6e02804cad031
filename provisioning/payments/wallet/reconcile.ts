/** Compares the coins of each gateway in the books with those on its chain. */
import { setTimeout } from 'node:timers/promises';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { gateway } from '../../../entities/payments/ledger.ts';
import { LIST_DEPOSIT_ADDRESSES, LIST_GATEWAYS, READ_GATEWAY } from '../../../entities/payments/movement.ts';
import type { PaymentDriver } from '../drivers/driver.ts';
import type { X402Driver } from '../drivers/x402/driver.ts';

export interface Compared {
  /** The ledger account of the gateway. */
  name: string;
  coin: string;
  bookedUnits: bigint;
  /** Undefined: no driver can tell, or its node did not answer. */
  chainUnits: bigint | undefined;
  /** Units of payments that may still come or came meanwhile, and of payouts that may have left or left meanwhile. */
  pendingUnits: { in: bigint; out: bigint };
  /** The reason why a driver that can tell did not. */
  fault?: string;
}

/** The units that the books lack; negative: those that the chain lacks. Undefined: the chain did not tell. */
export const differenceOf = ({ chainUnits, bookedUnits }: Compared): bigint | undefined =>
  chainUnits === undefined ? undefined : chainUnits - bookedUnits;

/**
 * RIGHT: the chain has the same units. PENDING: payments and payouts under way explain the difference. WRONG: the chain has fewer
 * than they explain, so coins are lost. SURPLUS: the chain has more. A contract may have sent them in a way that no driver sees.
 * UNKNOWN: no driver can tell. SILENT: a driver can tell, and its node did not answer.
 */
export type Verdict = 'RIGHT' | 'PENDING' | 'WRONG' | 'SURPLUS' | 'UNKNOWN' | 'SILENT';

export function verdictOf(compared: Compared): Verdict {
  const difference = differenceOf(compared);
  if (difference === undefined) return compared.fault === undefined ? 'UNKNOWN' : 'SILENT';
  if (difference === 0n) return 'RIGHT';
  const { in: coming, out: leaving } = compared.pendingUnits;
  if (difference < -leaving) return 'WRONG';
  return difference <= coming ? 'PENDING' : 'SURPLUS';
}

/** Reads the units of each coin. Undefined: the driver cannot tell. */
type ReadUnits = () => Promise<ReadonlyMap<string, bigint> | undefined>;
interface Reader {
  coins: string[];
  read?: ReadUnits;
}

/** How often it compares a gateway with an unexplained difference. The service may not have read the last block of the chain yet. */
const TRIES = 3;
const PAUSE_MS = 3_000;

/** Compares each gateway in the order of the names of the ledger accounts. A gateway without coins is compared as well. */
export async function reconcile(
  db: Queryable,
  { payments, x402 }: { payments: readonly PaymentDriver[]; x402?: X402Driver | undefined },
  signal: AbortSignal,
): Promise<Compared[]> {
  const readers = new Map<string, Reader>();
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
  const names = new Set([...readers.keys(), ...(await LIST_GATEWAYS.all(db)).map(({ name }) => name)]);
  const compared: Compared[] = [];
  for (const name of [...names].sort()) {
    for (let tries = 1; ; tries++) {
      const found = await compare(db, name, readers.get(name));
      const isExplained = !found.map(verdictOf).some((verdict) => verdict === 'WRONG' || verdict === 'SURPLUS');
      if (isExplained || tries === TRIES) {
        compared.push(...found);
        break;
      }
      await setTimeout(PAUSE_MS, undefined, { signal });
    }
  }
  return compared;
}

/** Reads the books of a gateway just before and just after its chain, because the service may sell meanwhile. */
async function compare(db: Queryable, name: string, { coins, read }: Reader = { coins: [] }): Promise<Compared[]> {
  const before = await READ_GATEWAY.all(db, [name]);
  const units = await read?.().catch((fault: Error) => fault);
  const after = await READ_GATEWAY.all(db, [name]);
  const isFault = units instanceof Error;
  return [...new Set([...coins, ...before.map(({ coin }) => coin), ...after.map(({ coin }) => coin)])].map((coin) => {
    const [then, now] = [before, after].map((rows) => boundsOf(rows.find((row) => row.coin === coin))) as [
      Bounds,
      Bounds,
    ];
    const most = then.most > now.most ? then.most : now.most;
    const least = then.least < now.least ? then.least : now.least;
    return {
      ...{ name, coin },
      bookedUnits: now.booked,
      chainUnits: isFault ? undefined : units?.get(coin),
      pendingUnits: { in: most - now.booked, out: now.booked - least },
      ...(isFault && { fault: units.message }),
    };
  });
}

/** The units in the books, with the least and the most that the chain may have then. */
type Bounds = Record<'booked' | 'least' | 'most', bigint>;
function boundsOf(row: Awaited<ReturnType<typeof READ_GATEWAY.all>>[number] | undefined): Bounds {
  const booked = BigInt(row?.units ?? 0);
  return { booked, least: booked - BigInt(row?.outgoing ?? 0), most: booked + BigInt(row?.incoming ?? 0) };
}
