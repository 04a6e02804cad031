/** A chain in memory, for which the test mines and reverts blocks, and a driver that reads it. */
import { createHash } from 'node:crypto';
import type {
  Block,
  ChainReader,
  Coin,
  Invoice,
  ObservedPayment,
  PaymentDriver,
  PaymentTarget,
} from '../../../provisioning/payments/drivers/driver.ts';

const COIN = { network: 'testnet', decimals: 8, confirmationsRequired: 2, pegged: false };
export const COINS: readonly Coin[] = [
  { ...COIN, code: 'TST', name: 'Test coin', fixedRateMicros: 100_000_000n },
  { ...COIN, code: 'OTHER', name: 'Another coin of that chain', fixedRateMicros: 1_000_000n },
];

type Paid = Omit<ObservedPayment, 'confirmations'>;

export class Chain implements ChainReader {
  readonly network = 'testnet';
  blocks: Block[] = [];
  pool: Paid[] = [];
  #made = 0;

  constructor() {
    this.mine();
  }

  async head() {
    const { height, hash } = this.blocks.at(-1)!;
    return { height, hash };
  }

  async hash(height: number) {
    return this.blocks[height]?.hash;
  }

  async block(height: number, addresses: ReadonlySet<string>): Promise<Block> {
    const block = this.blocks[height]!;
    return { ...block, payments: block.payments.filter(({ address }) => addresses.has(address)) };
  }

  async announced(addresses: ReadonlySet<string>) {
    return this.pool.filter(({ address }) => addresses.has(address)).map((one) => ({ ...one, confirmations: 0 }));
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
      .update(`${kind} ${this.#made++}`)
      .digest('hex');
  }
}

export class ChainDriver implements PaymentDriver {
  readonly name = 'test';
  readonly simulated = false;
  readonly chains: readonly [Chain];
  readonly coinList: Coin[];

  constructor(chain: Chain, coins: readonly Coin[] = COINS) {
    this.chains = [chain];
    this.coinList = coins.map((coin) => ({ ...coin }));
  }

  coins() {
    return this.coinList;
  }

  depositSource() {
    return 'testnet addresses';
  }

  async open({ amountCrypto }: Invoice, deposit: number | undefined): Promise<PaymentTarget> {
    const walletAddress = `address-${deposit}`;
    return { walletAddress, paymentUri: `testnet:${walletAddress}?amount=${amountCrypto}` };
  }
}
