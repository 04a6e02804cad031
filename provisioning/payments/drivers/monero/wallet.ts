/** A view-only wallet behind monero-wallet-rpc, and the daemon by which is seen whether the wallet is up to date. */
import { RpcError } from '../json-rpc.ts';
import type { MoneroRpc } from './rpc.ts';

/** One transaction's outputs to one subaddress, summed by the wallet. */
export interface Transfer {
  txid: string;
  address: string;
  /** Piconero. */
  amount: bigint;
  confirmations?: number;
  double_spend_seen: boolean;
  /** Whether it could not be spent yet; so is everything with less than ten confirmations. */
  locked: boolean;
  /** Since the epoch: of its block, or when the wallet saw it. */
  timestamp: number;
  /** A height or a time before which it cannot be spent; 0: none. */
  unlock_time: number;
}

/** Blocks that a wallet may lack: it looks every 20 seconds, and there is one every two minutes. */
const BEHIND_MAX = 3;
/** What a wallet answers that has no key to spend with. */
const WATCH_ONLY = -29;
/** The only account that is used: its subaddresses are those of top-ups. */
const ACCOUNT = { account_index: 0 };

export class ViewWallet {
  readonly #wallet: MoneroRpc;
  readonly #daemon: MoneroRpc;
  readonly #address: string;

  /** @param address the primary one of the wallet that is meant */
  constructor(wallet: MoneroRpc, daemon: MoneroRpc, address: string) {
    this.#wallet = wallet;
    this.#daemon = daemon;
    this.#address = address;
  }

  /** A fresh subaddress. It is written down before anybody hears of it: a wallet that dies would give it out again. */
  async newSubaddress(label: string, signal: AbortSignal): Promise<{ address: string; index: number }> {
    await this.check(signal);
    const made = await this.#wallet.call<{ address: string; address_index: number }>(
      'create_address',
      { ...ACCOUNT, label },
      signal,
    );
    await this.#wallet.call('store', {}, signal);
    return { address: made.address, index: made.address_index };
  }

  /** All that came to a subaddress. @throws if the wallet cannot know */
  async received(
    address: string,
    index: number,
    signal: AbortSignal,
  ): Promise<{ mined: Transfer[]; pool: Transfer[] }> {
    await this.check(signal, { address, index });
    const { in: mined = [], pool = [] } = await this.#wallet.call<{ in?: Transfer[]; pool?: Transfer[] }>(
      'get_transfers',
      { ...ACCOUNT, in: true, pool: true, subaddr_indices: [index] },
      signal,
    );
    const stray = [...mined, ...pool].find((transfer) => transfer.address !== address);
    if (stray) throw new Error(`The wallet shows a transfer to another address: ${stray.txid}`);
    return { mined, pool };
  }

  /** @throws if it is another wallet, or does not know that subaddress of its; if it can spend; if it lacks blocks */
  async check(signal: AbortSignal, known?: { address: string; index: number }): Promise<void> {
    const { addresses } = await this.#wallet.call<{ addresses: { address: string; address_index: number }[] }>(
      'get_address',
      { ...ACCOUNT, address_index: [0, ...(known ? [known.index] : [])] },
      signal,
    );
    const addressOf = (index: number) => addresses.find((one) => one.address_index === index)?.address;
    if (addressOf(0) !== this.#address) throw new Error('The wallet that is open is not the one of the configuration.');
    if (known && addressOf(known.index) !== known.address) throw new Error('The wallet does not know its subaddress.');
    await this.#refuseSpending(signal);
    const [{ height }, daemon] = await Promise.all([
      this.#wallet.call<{ height: number }>('get_height', {}, signal),
      this.#daemon.call<{ height: number; synchronized: boolean }>('get_info', {}, signal),
    ]);
    if (!daemon.synchronized) throw new Error(`The daemon is still at block ${daemon.height}.`);
    if (Math.abs(daemon.height - height) > BEHIND_MAX)
      throw new Error(`The wallet is at block ${height}, the daemon at ${daemon.height}.`);
  }

  async #refuseSpending(signal: AbortSignal): Promise<void> {
    const answer = await this.#wallet
      .call('query_key', { key_type: 'spend_key' }, signal)
      .catch((fault: unknown) => fault);
    if (answer instanceof RpcError && answer.code === WATCH_ONLY) return;
    if (answer instanceof Error) throw answer;
    throw new Error('The wallet can spend what it has: a view-only one is wanted here.');
  }
}
