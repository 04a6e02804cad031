/** A view-only wallet behind monero-wallet-rpc. The daemon tells whether the wallet is up to date. */
import { type JsonRpc, RpcError } from '../json-rpc.ts';

/** One transaction's outputs to one subaddress, summed by the wallet. */
export interface Transfer {
  txid: string;
  address: string;
  /** Piconero. */
  amount: bigint;
  confirmations?: number;
  double_spend_seen: boolean;
  /** Whether the wallet could not spend it yet, such as everything with less than ten confirmations. */
  locked: boolean;
  /** Seconds since the epoch: the time of its block, or when the wallet saw it. */
  timestamp: number;
  /** The height or time of its unlocking; 0: none. */
  unlock_time: number;
}

/** Blocks that a wallet may lack. It refreshes every 20 seconds, and the chain has a block every two minutes. */
const BEHIND_MAX = 3;
/** A daemon without a new block for so long has stopped. The chain has a block every two minutes. */
const STOPPED_MS = 3_600_000;
/** The error code of a wallet without a spend key. */
const WATCH_ONLY = -29;
/** The only account. Its subaddresses are those of top-ups. */
const ACCOUNT = { account_index: 0 };

export class ViewWallet {
  readonly #wallet: JsonRpc;
  readonly #daemon: JsonRpc;
  readonly #address: string;

  /** @param address the primary address of the wallet */
  constructor(wallet: JsonRpc, daemon: JsonRpc, address: string) {
    this.#wallet = wallet;
    this.#daemon = daemon;
    this.#address = address;
  }

  /** A fresh subaddress. The wallet stores it before the customer sees it, because a killed wallet would reuse it. */
  async newSubaddress(label: string, signal: AbortSignal): Promise<{ address: string; index: number }> {
    await this.check(signal);
    const made = await this.#wallet.call<{ address: string; address_index: number }>(signal, 'create_address', {
      ...ACCOUNT,
      label,
    });
    await this.#wallet.call(signal, 'store');
    return { address: made.address, index: made.address_index };
  }

  /** All transfers to a subaddress. @throws if the wallet is not up to date */
  async received(
    address: string,
    index: number,
    signal: AbortSignal,
  ): Promise<{ mined: Transfer[]; pool: Transfer[] }> {
    await this.check(signal, { address, index });
    const { mined, pool } = await this.#transfers({ subaddr_indices: [index] }, signal);
    const stray = [...mined, ...pool].find((transfer) => transfer.address !== address);
    if (stray) throw new Error(`The wallet reports a transfer to another address: ${stray.txid}`);
    return { mined, pool };
  }

  /** The transfers of the last blocks, and the announced ones, to all subaddresses. */
  async latest(blocks: number, signal: AbortSignal): Promise<Transfer[]> {
    const { height } = await this.#wallet.call<{ height: number }>(signal, 'get_height');
    const { mined, pool } = await this.#transfers(
      { filter_by_height: true, min_height: Math.max(0, height - blocks) },
      signal,
    );
    return [...mined, ...pool];
  }

  async #transfers(which: object, signal: AbortSignal): Promise<{ mined: Transfer[]; pool: Transfer[] }> {
    const { in: mined = [], pool = [] } = await this.#wallet.call<{ in?: Transfer[]; pool?: Transfer[] }>(
      signal,
      'get_transfers',
      { ...ACCOUNT, in: true, pool: true, ...which },
    );
    return { mined, pool };
  }

  /** @throws if it is another wallet, does not know the subaddress, can spend, or lacks blocks. Or if the daemon has stopped */
  async check(signal: AbortSignal, known?: { address: string; index: number }): Promise<void> {
    const { addresses } = await this.#wallet.call<{ addresses: { address: string; address_index: number }[] }>(
      signal,
      'get_address',
      { ...ACCOUNT, address_index: [0, ...(known ? [known.index] : [])] },
    );
    const addressOf = (index: number) => addresses.find((one) => one.address_index === index)?.address;
    if (addressOf(0) !== this.#address) throw new Error('The open wallet is not the configured one.');
    if (known && addressOf(known.index) !== known.address) throw new Error('The wallet does not know its subaddress.');
    await this.#refuseSpending(signal);
    const [{ height }, daemon] = await Promise.all([
      this.#wallet.call<{ height: number }>(signal, 'get_height'),
      this.#daemon.call<{ height: number; synchronized: boolean }>(signal, 'get_info'),
    ]);
    const { block_header: newest } = await this.#daemon.call<{ block_header: { timestamp: number } }>(
      signal,
      'get_last_block_header',
    );
    if (newest.timestamp * 1000 < Date.now() - STOPPED_MS)
      throw new Error(`The newest block of the daemon is of ${new Date(newest.timestamp * 1000).toISOString()}.`);
    if (!daemon.synchronized) throw new Error(`The daemon is still at block ${daemon.height}.`);
    if (Math.abs(daemon.height - height) > BEHIND_MAX)
      throw new Error(`The wallet is at block ${height}, the daemon at ${daemon.height}.`);
  }

  async #refuseSpending(signal: AbortSignal): Promise<void> {
    const answer = await this.#wallet
      .call(signal, 'query_key', { key_type: 'spend_key' })
      .catch((fault: unknown) => fault);
    if (answer instanceof RpcError && answer.code === WATCH_ONLY) return;
    if (answer instanceof Error) throw answer;
    throw new Error('The wallet can spend its coins: replace it by a view-only wallet.');
  }
}
