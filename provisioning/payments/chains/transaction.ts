/** Observes one transaction that the operator names. The chain sync did not see it. */
import type { Database } from '../../../entities/database/database.ts';
import { find } from '../../../entities/database/table.ts';
import { ChainBlock } from '../../../entities/payments/chain.ts';
import type { ChainNode, ChainReader } from '../drivers/driver.ts';
import { findDepositsIn, lockChain, tipOf } from './blocks.ts';
import { writeObserved } from './observed-payments.ts';
import { joinOutputs } from './outputs.ts';

/** @returns undefined if the nodes cannot look it up. @throws if no node answers, or it knows another block than the service */
export const observeTransaction = (
  db: Database,
  { network, nodes }: ChainReader,
  txId: string,
  signal: AbortSignal,
): Promise<true | undefined> =>
  nodes.ask(signal, async (node) => {
    if (!node.heightOf) return undefined;
    const height = await node.heightOf(txId, signal);
    if (typeof height === 'number') await observeBlock(db, network, node, { height, txId }, signal);
    return true;
  });

async function observeBlock(
  db: Database,
  network: string,
  node: ChainNode,
  { height, txId }: { height: number; txId: string },
  signal: AbortSignal,
): Promise<void> {
  const block = await node.block(height, findDepositsIn(db), signal);
  const payments = block.payments.filter((one) => one.txId === txId);
  await db.transaction(async (tx) => {
    await lockChain(tx, network);
    const tip = await tipOf(tx, network);
    const known = await find(tx, ChainBlock, { network, height });
    // From the tip on the chain sync notices removed blocks.
    if (!tip || tip.height < height || (known && known.hash !== block.hash))
      throw new Error(`The service has not read the block ${height} of ${network} yet.`);
    await writeObserved(tx, { network, block }, await joinOutputs(tx, network, payments));
  });
}
