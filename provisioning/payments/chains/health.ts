/** The health of a gateway: whether it answers, and how far the worker has read its chains. */
import { find } from '../../../entities/database/table.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { Chain } from '../../../entities/payments/chain.ts';
import { FIND_TOP_UP_PROBLEM } from '../../../entities/payments/top-up.ts';
import type { ChainReader, PaymentDriver } from '../drivers/driver.ts';
import type { X402Driver, X402Health } from '../drivers/x402/driver.ts';
import { tipOf } from './blocks.ts';

/** A gateway that takes longer to answer counts as unreachable. */
const ANSWER_MS = 5_000;

export const X402_GATEWAY = 'x402';

export interface ChainHealth {
  network: string;
  /** The last block that the worker has read; null: none. */
  height: number | null;
  /** Blocks that the worker has yet to read; null: the node does not answer. */
  lagBlocks: number | null;
  /** The reason why the worker cannot read it or settle its payments; null: none. */
  problem: string | null;
}

export interface Gateway {
  name: string;
  simulated: boolean;
  /** Codes of its coins. */
  coins: string[];
  reachable: boolean;
  /** A problem that the operator should solve before the gateway stops accepting payments; null: none. */
  warning: string | null;
  /** The chains that it reads block by block. */
  chains: ChainHealth[];
}

export async function gatewayOf(db: Queryable, driver: PaymentDriver, aborted: AbortSignal): Promise<Gateway> {
  const signal = AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_MS)]);
  const [reachable, ...chains] = await Promise.all([
    Promise.resolve(driver.reachable?.(signal) ?? true).catch(() => false),
    ...(driver.chains ?? []).map((reader) => chainOf(db, reader, signal)),
  ]);
  const { name, simulated } = driver;
  const coins = driver.coins().map(({ code }) => code);
  const warning = chains.find(({ problem }) => problem)?.problem ?? (await topUpProblem(db, coins));
  return { name, simulated, coins, reachable, warning, chains };
}

/** The problems of the top-ups in these coins, in one sentence; null: none. */
async function topUpProblem(db: Queryable, coins: readonly string[]): Promise<string | null> {
  const found = await FIND_TOP_UP_PROBLEM.first(db, [coins]);
  if (!found) return null;
  return found.count > 1 ? `${found.problem}; and ${found.count - 1} more` : found.problem;
}

/** The health of x402. Its name is that of its events, independent of the driver. */
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
  const [tip, chain] = [await tipOf(db, network), await find(db, Chain, { network })];
  const head = await reader.nodes.ask(signal, (node) => node.head(signal)).catch(() => null);
  return {
    network,
    height: tip?.height ?? null,
    lagBlocks: head && tip ? Math.max(0, head.height - tip.height) : null,
    problem: chain?.problem ?? null,
  };
}
