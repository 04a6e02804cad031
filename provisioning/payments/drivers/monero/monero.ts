/** Monero: each top-up has a subaddress of a view-only wallet, and the wallet reports its payments. */
import {
  type Coin,
  closedObject,
  type GatewayKind,
  type Invoice,
  type ObservedPayment,
  type OpenInvoice,
  type PaymentDriver,
  type PaymentTarget,
  type Received,
} from '../driver.ts';
import type { Login } from './digest.ts';
import { moneroRpc } from './rpc.ts';
import { type Transfer, ViewWallet } from './wallet.ts';

interface Endpoint {
  url: string;
  /** `user:password`. */
  login?: string;
}
interface Settings {
  wallet: Endpoint;
  daemon: Endpoint;
  /** The primary address of the wallet. */
  address: string;
  confirmations: number;
}

const ENDPOINT = closedObject(['url'], {
  url: { type: 'string', pattern: '^https?://' },
  login: { type: 'string', pattern: '^[^:"]+:.+$' },
});

export const monero: GatewayKind<Settings> = {
  schema: closedObject(['wallet', 'daemon', 'address'], {
    wallet: ENDPOINT,
    daemon: ENDPOINT,
    address: { type: 'string', pattern: '^[1-9A-HJ-NP-Za-km-z]{95}$' },
    confirmations: { type: 'integer', minimum: 1, maximum: 720, default: 10 },
  }),
  open: ({ wallet, daemon, address, confirmations }) =>
    new MoneroDriver(new ViewWallet(rpcOf(wallet), rpcOf(daemon), address), confirmations),
};

const rpcOf = ({ url, login }: Endpoint) => moneroRpc(url, login === undefined ? undefined : loginOf(login));
const loginOf = (login: string): Login => {
  const [user = '', ...password] = login.split(':');
  return { user, password: password.join(':') };
};

/** Two hours. Reorganisations of 18 blocks have happened. */
const FINAL_CONFIRMATIONS = 60;
/** The blocks of two hours, beside those that a payment needs until its credit. */
const RECENT_BLOCKS = 60;
/** The timeout of one observation. A wallet that catches up answers no call meanwhile. */
const OBSERVE_TIMEOUT_MS = 30_000;

class MoneroDriver implements PaymentDriver {
  readonly name = 'monero';
  readonly simulated = false;
  readonly #wallet: ViewWallet;
  readonly #coin: Coin;

  constructor(wallet: ViewWallet, confirmationsRequired: number) {
    this.#wallet = wallet;
    const final = { finalConfirmations: FINAL_CONFIRMATIONS, pegged: false };
    this.#coin = { code: 'XMR', name: 'Monero', network: 'monero', decimals: 12, confirmationsRequired, ...final };
  }

  coins(): readonly Coin[] {
    return [this.#coin];
  }

  async open(
    { orderNumber, amountCrypto }: Invoice,
    _deposit: number | undefined,
    signal: AbortSignal,
  ): Promise<PaymentTarget> {
    const { address, index } = await this.#wallet.newSubaddress(orderNumber, signal);
    const paymentUri = `monero:${address}?tx_amount=${amountCrypto}&tx_description=${orderNumber}`;
    return { walletAddress: address, paymentUri, reference: String(index) };
  }

  async reachable(signal: AbortSignal): Promise<boolean> {
    await this.#wallet.check(signal);
    return true;
  }

  /** The wallet sums the outputs of a transaction to one subaddress. So the index of the subaddress is the position. */
  async observe({ walletAddress, reference }: OpenInvoice, aborted: AbortSignal): Promise<ObservedPayment[]> {
    const index = Number(reference);
    const signal = AbortSignal.any([aborted, AbortSignal.timeout(OBSERVE_TIMEOUT_MS)]);
    const { mined, pool } = await this.#wallet.received(walletAddress!, index, signal);
    // During a new block, a transaction may be in both. A double spend counts only when it is mined.
    const announced = pool.filter(({ double_spend_seen }) => !double_spend_seen);
    const transfers = new Map([...announced, ...mined].map((transfer) => [transfer.txid, transfer]));
    return [...transfers.values()].map((transfer) => ({
      txId: transfer.txid,
      position: index,
      coin: this.#coin.code,
      address: walletAddress!,
      units: transfer.amount,
      confirmations: this.#confirmationsOf(transfer),
      at: new Date(transfer.timestamp * 1000),
      // The wallet has the time of the block, or else of the announcement.
      minedAt: new Date(transfer.timestamp * 1000),
    }));
  }

  async received(aborted: AbortSignal): Promise<Received[]> {
    const signal = AbortSignal.any([aborted, AbortSignal.timeout(OBSERVE_TIMEOUT_MS)]);
    const transfers = await this.#wallet.latest(RECENT_BLOCKS + this.#coin.confirmationsRequired, signal);
    return transfers
      .filter(({ double_spend_seen }) => !double_spend_seen)
      .map((transfer) => ({
        address: transfer.address,
        payment: { txId: transfer.txid, coin: this.#coin.code, units: transfer.amount },
        confirmations: this.#confirmationsOf(transfer),
      }));
  }

  /** The payer may lock a transfer for years. Until it unlocks, it lacks one confirmation. */
  #confirmationsOf({ confirmations = 0, locked, unlock_time }: Transfer): number {
    const isLocked = locked && unlock_time !== 0;
    return isLocked ? Math.min(confirmations, this.#coin.confirmationsRequired - 1) : confirmations;
  }
}
