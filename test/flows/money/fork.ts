/** A network with two nodes that disagree. The walk says how. */
import { createHash } from 'node:crypto';
import type { Block, ChainNode, ChainReader, FindDeposits } from '../../../provisioning/payments/drivers/driver.ts';
import { Nodes } from '../../../provisioning/payments/drivers/nodes.ts';
import { Chain, type Paid, toDeposits } from '../../payments/chains/chain.ts';

/** A node knows all blocks, not yet the last ones, or some of its own. Or it answers errors: always, or after the head. */
export const NODE_MOODS = ['agrees', 'lags', 'forks', 'away', 'breaks'] as const;
export type NodeMood = (typeof NODE_MOODS)[number];

/** The fate of the payments in removed blocks: announced again at once, later, never, or with another outcome. */
export const FATES = ['again', 'later', 'lost', 'other'] as const;
export type Fate = (typeof FATES)[number];

/** Blocks above the final one, on a network that tells which are final. */
const UNFINAL_BLOCKS = 5;
/** The service takes blocks this deep for final, on a network that does not tell. */
const FINAL_DEPTH = 100;

export class ForkedNetwork implements ChainReader {
  readonly network: string;
  readonly chain: Chain;
  readonly tellsFinality: boolean;
  /** The node that the service asks first. */
  first = 0;
  /** The highest final block. */
  finalHeight = 0;
  readonly #nodes: readonly [ForkedNode, ForkedNode];
  /** Payments whose blocks a reorganisation removed, and which come back later. */
  readonly #later: Paid[] = [];

  /** @param tellsFinality whether its nodes tell which block is final */
  constructor(network: string, tellsFinality: boolean) {
    this.network = network;
    this.tellsFinality = tellsFinality;
    this.chain = new Chain(network);
    this.#nodes = [new ForkedNode(this), new ForkedNode(this)];
  }

  /** New at each look, because the rest of a failed node depends on the clock. A walk would not repeat itself. */
  get nodes(): Nodes<ChainNode> {
    return new Nodes<ChainNode>([this.#nodes[this.first]!, this.#nodes[1 - this.first]!]);
  }

  get height(): number {
    return this.chain.blocks.length - 1;
  }

  mine(count: number): void {
    this.chain.mine(count);
    const final = this.height - (this.tellsFinality ? UNFINAL_BLOCKS : FINAL_DEPTH);
    this.finalHeight = Math.max(this.finalHeight, final);
  }

  /** Reverts blocks that are not final. */
  reorganise(depth: number, fate: Fate): void {
    const { blocks } = this.chain;
    const gone = blocks.slice(blocks.length - Math.min(depth, this.height - this.finalHeight));
    if (!gone.length) return;
    if (fate === 'later') this.#later.push(...gone.flatMap(({ payments }) => payments));
    this.chain.reorganise(gone.length, { lost: fate !== 'again' });
    if (fate === 'other') this.chain.pool.push(...toOthers(gone.flatMap(({ payments }) => payments)));
  }

  /** @param extra the blocks by which a fork is longer than the blocks that it replaces */
  disagree(which: number, mood: NodeMood, depth: number, extra: number): void {
    this.first = which;
    this.#nodes[which]!.become(mood, Math.min(depth, this.height - this.finalHeight), extra);
  }

  /** Ends all disagreement. Payments that a reorganisation delayed are announced again. */
  agree(): void {
    this.chain.pool.push(...this.#later.splice(0));
    for (const node of this.#nodes) node.become('agrees', 0, 0);
  }

  /** The payments in blocks up to a height. */
  payments(height = this.height): Paid[] {
    return this.chain.blocks.slice(0, height + 1).flatMap(({ payments }) => payments);
  }
}

/** The payments of contracts pay another deposit address, or a third more. Those of the operator stay. */
function toOthers(payments: readonly Paid[]): Paid[] {
  const deposits = payments.filter(({ address }) => address.includes('address-'));
  return payments.map((one) => {
    const index = deposits.indexOf(one);
    if (index < 0) return one;
    const { address } = deposits[(index + 1) % deposits.length]!;
    return { ...one, address, units: (one.units * 4n) / 3n + 1n };
  });
}

class ForkedNode implements ChainNode {
  readonly #of: ForkedNetwork;
  #mood: NodeMood = 'agrees';
  #lag = 0;
  #fork: Block[] = [];
  /** The payments that the fork replaced, and has not in a block. */
  #left: readonly Paid[] = [];
  #made = 0;
  readonly finalHeight?: () => Promise<number>;

  constructor(of: ForkedNetwork) {
    this.#of = of;
    if (of.tellsFinality) this.finalHeight = async () => Math.min(of.finalHeight, this.#sharedHeight());
  }

  become(mood: NodeMood, depth: number, extra: number): void {
    this.#mood = mood;
    this.#lag = depth;
    if (mood === 'forks') this.#branch(depth, extra);
  }

  /** Mines own blocks, with every second payment of the replaced ones and of the announced ones. */
  #branch(depth: number, extra: number): void {
    const { blocks, pool } = this.#of.chain;
    const shared = blocks.slice(0, blocks.length - depth);
    const replaced = [...blocks.slice(shared.length).flatMap(({ payments }) => payments), ...pool];
    const taken = replaced.filter((_, index) => index % 2 === 0);
    this.#left = replaced.filter((_, index) => index % 2 === 1);
    this.#fork = [...shared];
    for (let i = 0; i < depth + extra; i++) {
      const text = `${this.#of.network} ${this.#of.first} fork ${this.#made++} ${blocks.length}`;
      const hash = createHash('sha256').update(text).digest('hex');
      const { hash: parent } = this.#fork.at(-1)!;
      const payments = i === 0 ? taken : [];
      this.#fork.push({ height: this.#fork.length, hash, parent, at: new Date(), payments });
    }
  }

  /** The height of its last block that the network has as well. An honest node takes no other block for final. */
  #sharedHeight(): number {
    return this.#blocks.findLastIndex(({ hash }, height) => this.#of.chain.blocks[height]?.hash === hash);
  }

  get #blocks(): readonly Block[] {
    const { blocks } = this.#of.chain;
    if (this.#mood === 'away') throw new Error('The node is away.');
    if (this.#mood === 'forks') return this.#fork;
    return this.#mood === 'lags' ? blocks.slice(0, Math.max(1, blocks.length - this.#lag)) : blocks;
  }

  async head() {
    const { height, hash, at } = this.#blocks.at(-1)!;
    return { height, hash, at };
  }

  async hash(height: number) {
    if (this.#mood === 'breaks') throw new Error('The node breaks off.');
    return this.#blocks[height]?.hash;
  }

  async block(height: number, find: FindDeposits): Promise<Block> {
    if (this.#mood === 'breaks') throw new Error('The node breaks off.');
    const block = this.#blocks[height]!;
    return { ...block, payments: await toDeposits(block.payments, find) };
  }

  async announced(find: FindDeposits) {
    const pool = this.#mood === 'forks' ? this.#left : this.#of.chain.pool;
    if (this.#mood === 'breaks') throw new Error('The node breaks off.');
    const payments = await toDeposits(pool, find);
    return { payments: payments.map((one) => ({ ...one, confirmations: 0 })), isComplete: true };
  }

  async heightOf(txId: string) {
    const isIt = (one: { txId: string }) => one.txId === txId;
    const height = this.#blocks.find(({ payments }) => payments.some(isIt))?.height;
    return height ?? (this.#of.chain.pool.some(isIt) ? null : undefined);
  }
}
