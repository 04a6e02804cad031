/**
 * Looks at a chain through one node: its new blocks, its announced payments, and its final height. Another node that takes over
 * begins a new look, because two nodes may disagree about everything.
 */
import type { Database } from '../../../entities/database/database.ts';
import { IS_OLD, KEEP_CHAIN, NOTE_TOKEN_CODES } from '../../../entities/payments/chain.ts';
import { FIND_UNFINAL, FINISH_BELOW } from '../../../entities/payments/observed-payment.ts';
import type { ChainNode, ChainReader, Head } from '../drivers/driver.ts';
import { type Doubt, findDepositsIn, type Progress, readBlocks } from './blocks.ts';
import { dropUnobserved, writeObserved } from './observed-payments.ts';
import type { LostAddressMap } from './lost-addresses.ts';
import { joinOutputs } from './outputs.ts';

/** Payments this deep are final, if the chain itself does not tell. */
export const FINAL_DEPTH = 100;

export interface Look extends Progress {
  /** The order numbers of the top-ups for which announced payments changed. */
  changed: string[];
  /** The fault of all nodes, of which at least one has stopped; undefined: the node still gets blocks. */
  stopped?: string | undefined;
  /** The fault of all nodes, of which at least one told only its blocks; undefined: a node told all. */
  unread?: string | undefined;
}

/** The code of tokens is checked again after so long. */
const TOKENS_MS = 3_600_000;
/** When the tokens of each node were checked, by the clock of the process. */
const checkedAt = new WeakMap<ChainNode, number>();

/**
 * Passes over a node that has stopped: its highest block is old. If all others fail, it is read all the same, and proves nothing
 * about the present. A node that fails at its announced payments gives way to the next one. If all others fail, its blocks
 * count.
 * @throws Error if no node can be read
 */
export async function look(
  db: Database,
  { network, nodes, staleSeconds }: ChainReader,
  given: Pick<LookOptions, 'doubted' | 'lost' | 'signal'>,
): Promise<Look> {
  const { signal } = given;
  const stopped: { node: ChainNode; head: Head }[] = [];
  let partial: Look | undefined;
  try {
    return await nodes.ask(signal, async (node) => {
      const head = await node.head(signal);
      if (await isOld(db, head, staleSeconds)) {
        stopped.push({ node, head });
        throw new Error(`The newest block of ${network} is ${head.height}, of ${head.at.toISOString()}.`);
      }
      const found = await lookWith(db, network, node, head, given);
      if (found.unread === undefined) return found;
      partial = found;
      throw new Error(found.unread);
    });
  } catch (fault) {
    signal.throwIfAborted();
    if (partial) return { ...partial, unread: (fault as Error).message };
    const [last] = stopped.toSorted((one, other) => other.head.height - one.head.height);
    if (!last) throw fault;
    return lookWith(db, network, last.node, last.head, { ...given, stopped: (fault as Error).message });
  }
}

const isOld = async (db: Database, { at }: Head, staleSeconds: number | undefined): Promise<boolean> =>
  staleSeconds !== undefined && (await IS_OLD.first(db, [at, staleSeconds]))!.old;

interface LookOptions extends Pick<Look, 'stopped'> {
  /** The doubt of the look before, if it had one. */
  doubted?: Doubt | undefined;
  /** The addresses of the chain that a lost time may have given out. Default: none. */
  lost?: LostAddressMap;
  signal: AbortSignal;
}

async function lookWith(
  db: Database,
  network: string,
  node: ChainNode,
  newest: Head,
  { doubted, lost = new Map(), signal, stopped }: LookOptions,
): Promise<Look> {
  await checkTokens(db, network, node, signal);
  const progress = await readBlocks(db, network, node, newest, { doubted, lost, signal });
  const { state, head, height } = progress;
  const isReached = state === 'reached';
  const { changed, isComplete, unread }: Announcements = isReached
    ? await readAnnounced(db, network, node, signal).catch((fault: Error) => {
        signal.throwIfAborted();
        return { changed: [], isComplete: false, unread: fault.message };
      })
    : { changed: [], isComplete: false };
  const finalHeight = isReached ? await finish(db, network, node, height, signal) : null;
  await KEEP_CHAIN.all(db, [network, head, height, isComplete && stopped === undefined, finalHeight]);
  return { ...progress, changed, stopped, unread };
}

/** The service reads no block of a chain whose token may be another one than before. The operator decides. */
async function checkTokens(db: Database, network: string, node: ChainNode, signal: AbortSignal): Promise<void> {
  const at = checkedAt.get(node);
  if (!node.tokenCodes || (at !== undefined && performance.now() < at + TOKENS_MS)) return;
  const codes = await node.tokenCodes(signal);
  const given = [codes.map(({ contract }) => contract), codes.map(({ codeHash }) => codeHash)];
  const [changed] = await NOTE_TOKEN_CODES.all(db, [network, ...given]);
  if (changed) {
    const { codeHash } = codes.find(({ contract }) => contract === changed.contract)!;
    throw new Error(
      `The code of the token ${changed.contract} on ${network} has changed. If you trust the new code, set its codeHash to ${codeHash}.`,
    );
  }
  checkedAt.set(node, performance.now());
}

interface Announcements extends Pick<Look, 'changed' | 'unread'> {
  isComplete: boolean;
}

/** Writes announced payments. */
async function readAnnounced(
  db: Database,
  network: string,
  node: ChainNode,
  signal: AbortSignal,
): Promise<Announcements> {
  const asked = node.announced?.(findDepositsIn(db), signal);
  const { payments: found, isComplete } = (await asked) ?? { payments: [], isComplete: true };
  const payments = await joinOutputs(db, network, found);
  const seen = payments.length ? await db.transaction((tx) => writeObserved(tx, { network }, payments)) : [];
  const gone = isComplete ? await dropUnobserved(db, { network }, payments) : [];
  return { changed: [...seen, ...gone], isComplete };
}

/**
 * Makes credited payments final that the chain cannot remove any more.
 * @returns the height up to which they are final; null: no payment waits for that
 */
async function finish(
  db: Database,
  network: string,
  node: ChainNode,
  height: number,
  signal: AbortSignal,
): Promise<number | null> {
  const unfinal = await FIND_UNFINAL.first(db, [network]);
  if (unfinal!.height === null) return null;
  const final = Math.min(height, (await node.finalHeight?.(signal)) ?? height - FINAL_DEPTH);
  if (unfinal!.height <= final) await FINISH_BELOW.all(db, [network, final]);
  return final;
}
