/** What there is to say of a gateway: whether it answers, and how far its chains have been read. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import type { ChainReader, PaymentDriver } from '../drivers/driver.ts';
import type { X402Driver, X402Health } from '../drivers/x402/driver.ts';
import { tipOf } from './blocks.ts';

/** Who says nothing for so long is not reached. */
const ANSWER_MS = 5_000;

export const X402_GATEWAY = 'x402';

export interface ChainHealth {
  network: string;
  /** Of the last block that was read; null: none was. */
  height: number | null;
  /** Blocks that are there and have not been read; null: the chain cannot be asked. */
  lagBlocks: number | null;
}

export interface Gateway {
  name: string;
  simulated: boolean;
  /** Codes of its coins. */
  coins: string[];
  reachable: boolean;
  /** What the operator should see to before nothing can be paid by it any more; null: nothing. */
  warning: string | null;
  /** Those that it reads block by block. */
  chains: ChainHealth[];
}

export async function gatewayOf(db: Queryable, driver: PaymentDriver, aborted: AbortSignal): Promise<Gateway> {
  const signal = AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_MS)]);
  const [reachable, ...chains] = await Promise.all([
    Promise.resolve(driver.reachable?.(signal) ?? true).catch(() => false),
    ...(driver.chains ?? []).map((reader) => chainOf(db, reader, signal)),
  ]);
  const { name, simulated } = driver;
  return { name, simulated, coins: driver.coins().map(({ code }) => code), reachable, warning: null, chains };
}

/** Payment by x402, under the name that its events have, whoever settles. */
export async function x402GatewayOf(driver: X402Driver, aborted: AbortSignal): Promise<Gateway> {
  const signal = AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_MS)]);
  const silence = new Promise<X402Health>((resolve) => {
    signal.addEventListener('abort', () => resolve({ reachable: false }));
  });
  const answer = Promise.resolve(driver.health?.(signal) ?? { reachable: true }).catch(() => ({ reachable: false }));
  const { reachable, warning }: X402Health = await Promise.race([answer, silence]);
  const { simulated, terms } = driver;
  return { name: X402_GATEWAY, simulated, coins: [terms.coin], reachable, warning: warning ?? null, chains: [] };
}

async function chainOf(db: Queryable, reader: ChainReader, signal: AbortSignal): Promise<ChainHealth> {
  const { network } = reader;
  const tip = await tipOf(db, network);
  const head = await reader.head(signal).catch(() => null);
  return {
    network,
    height: tip?.height ?? null,
    lagBlocks: head && tip ? Math.max(0, head.height - tip.height) : null,
  };
}
