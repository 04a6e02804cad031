/** Observes one transaction that the operator names. The chain sync did not see it, or it pays to lost addresses. */
import type { Database } from '../../../entities/database/database.ts';
import { find } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ChainBlock } from '../../../entities/payments/chain.ts';
import type { Block, ChainReader, ObservedPayment } from '../drivers/driver.ts';
import { findDepositsIn, lockChain, tipOf } from './blocks.ts';
import { type LostAddress, type LostAddresses, type LostAddressMap, unownedOf } from './lost-addresses.ts';
import { writeObserved } from './observed-payments.ts';
import { joinOutputs } from './outputs.ts';

/** Called for each payment to a lost address: writes a top-up there, if the operator has named its account. */
export type ClaimLost = (tx: Transaction, payment: ObservedPayment, lost: LostAddress) => Promise<void>;

interface Given {
  txId: string;
  claim: ClaimLost;
  signal: AbortSignal;
}

/** @returns undefined if the nodes cannot look it up. @throws if no node answers, or it knows another block than the service */
export async function observeTransaction(
  db: Database,
  { reader: { network, nodes }, lost }: { reader: ChainReader; lost: LostAddresses },
  { txId, claim, signal }: Given,
): Promise<true | undefined> {
  const lostOnes = await lost.read(db);
  const read = await nodes.ask(signal, async (node) => {
    if (!node.heightOf) return undefined;
    const height = await node.heightOf(txId, signal);
    return typeof height === 'number' ? node.block(height, findDepositsIn(db, lostOnes), signal) : 'no block';
  });
  if (read === undefined) return undefined;
  // A refusal of the claim is no fault of a node.
  if (read !== 'no block') await writePayments(db, { network, block: read, lostOnes }, { txId, claim });
  return true;
}

async function writePayments(
  db: Database,
  { network, block, lostOnes }: { network: string; block: Block; lostOnes: LostAddressMap },
  { txId, claim }: Pick<Given, 'txId' | 'claim'>,
): Promise<void> {
  const payments = block.payments.filter((one) => one.txId === txId);
  await db.transaction(async (tx) => {
    await lockChain(tx, network);
    const { height, hash } = block;
    const tip = await tipOf(tx, network);
    const known = await find(tx, ChainBlock, { network, height });
    // From the tip on the chain sync notices removed blocks.
    if (!tip || tip.height < height || (known && known.hash !== hash))
      throw new Error(`The service has not read the block ${height} of ${network} yet.`);
    const joined = await joinOutputs(tx, network, payments);
    for (const one of await unownedOf(tx, joined, lostOnes))
      await claim(tx, one, lostOnes.get(one.address.toLowerCase())!);
    await writeObserved(tx, { network, block }, joined);
  });
}
