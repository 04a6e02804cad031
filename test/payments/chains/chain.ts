/** A chain in memory, for which the test mines and reverts blocks, and a driver that reads it. */
import { createHash } from 'node:crypto';
import type {
  Announced,
  Block,
  ChainNode,
  ChainReader,
  Coin,
  FindDeposits,
  Invoice,
  ObservedPayment,
  PaymentDriver,
  PaymentTarget,
} from '../../../provisioning/payments/drivers/driver.ts';
import { Nodes } from '../../../provisioning/payments/drivers/nodes.ts';

const COIN = { network: 'testnet', decimals: 8, confirmationsRequired: 2, pegged: false };
export const COINS: readonly Coin[] = [
  { ...COIN, code: 'TST', name: 'Test coin', fixedRateMicros: 100_000_000n },
  { ...COIN, code: 'OTHER', name: 'Another coin of that chain', fixedRateMicros: 1_000_000n },
];

export type Paid = Omit<ObservedPayment, 'confirmations'>;

export class Chain implements ChainReader, ChainNode {
  readonly network: string;
  staleSeconds?: number;
  readonly nodes = new Nodes<ChainNode>([this]);
  blocks: Block[] = [];
  pool: Paid[] = [];
  #made = 0;

  constructor(network = 'testnet') {
    this.network = network;
    this.mine();
  }

  async head() {
    const { height, hash, at } = this.blocks.at(-1)!;
    return { height, hash, at };
  }

  async hash(height: number) {
    return this.blocks[height]?.hash;
  }

  async heightOf(txId: string) {
    const isIt = (one: Paid) => one.txId === txId;
    return this.blocks.find(({ payments }) => payments.some(isIt))?.height ?? (this.pool.some(isIt) ? null : undefined);
  }

  async block(height: number, find: FindDeposits): Promise<Block> {
    const block = this.blocks[height]!;
    return { ...block, payments: await toDeposits(block.payments, find) };
  }

  async announced(find: FindDeposits): Promise<Announced> {
    const payments = await toDeposits(this.pool, find);
    return { payments: payments.map((one) => ({ ...one, confirmations: 0 })), isComplete: true };
  }

  /** Announces a payment. @returns the payment as it will be mined */
  pay(address: string, units: bigint, { coin = 'TST', txId = this.#hash('tx') } = {}): Paid {
    const paid = { txId, position: 0, coin, address, units };
    this.pool.push(paid);
    return paid;
  }

  /** Mines this many blocks; the first holds all announced payments. */
  mine(count = 1, at = new Date()): void {
    for (let i = 0; i < count; i++) {
      const parent = this.blocks.at(-1)?.hash ?? '';
      this.blocks.push({ height: this.blocks.length, hash: this.#hash('block'), parent, at, payments: this.pool });
      this.pool = [];
    }
  }

  /** Reverts blocks. Their payments are announced again, or lost. */
  reorganise(depth: number, { lost = false } = {}): void {
    const gone = this.blocks.splice(this.blocks.length - depth);
    if (!lost) this.pool.push(...gone.flatMap(({ payments }) => payments));
  }

  #hash(kind: string): string {
    return createHash('sha256')
      .update(`${this.network} ${kind} ${this.#made++}`)
      .digest('hex');
  }
}

export async function toDeposits(payments: readonly Paid[], find: FindDeposits): Promise<Paid[]> {
  const deposits = await find(payments.map(({ address }) => address));
  return payments.filter(({ address }) => deposits.get(address.toLowerCase()) === address);
}

/** Finds these deposit addresses, without a database. */
export const finderOf =
  (deposits: readonly string[]): FindDeposits =>
  async (addresses) => {
    const given = new Set([...addresses].map((one) => one.toLowerCase()));
    return new Map(deposits.map((one) => [one.toLowerCase(), one] as const).filter(([lower]) => given.has(lower)));
  };

export class ChainDriver implements PaymentDriver {
  readonly name = 'test';
  readonly simulated = false;
  readonly chains: readonly [ChainReader];
  readonly coinList: Coin[];
  readonly #prefix: string;

  constructor(chain: ChainReader, coins: readonly Coin[] = COINS) {
    this.chains = [chain];
    this.coinList = coins.map((coin) => ({ ...coin }));
    this.#prefix = chain.network === 'testnet' ? '' : `${chain.network}-`;
  }

  coins() {
    return this.coinList;
  }

  depositSource() {
    return `${this.chains[0].network} addresses`;
  }

  async open({ amountCrypto }: Invoice, deposit: number | undefined): Promise<PaymentTarget> {
    const walletAddress = `${this.#prefix}address-${deposit}`;
    return { walletAddress, paymentUri: `${this.chains[0].network}:${walletAddress}?amount=${amountCrypto}` };
  }
}
