/** Coins of Bitcoin and its descendants, read from the operator's node. Each top-up has its own address. */
import { readFileSync } from 'node:fs';
import {
  type ChainReader,
  type Coin,
  closedObject,
  type GatewayKind,
  type Invoice,
  type PaymentDriver,
  type PaymentTarget,
} from '../driver.ts';
import { ExtendedKey } from '../extended-key.ts';
import { Nodes } from '../nodes.ts';
import { CHAINS, type UtxoChain } from './chains.ts';
import { UtxoReader } from './reader.ts';

interface Settings {
  chain: string;
  url: string;
  user?: string;
  password?: string;
  cookieFile?: string;
  xpub: string;
  confirmations?: number;
  pollSeconds: number;
}

export class UtxoPayments implements PaymentDriver {
  readonly name = 'utxo';
  readonly simulated = false;
  readonly chains: readonly [ChainReader];
  readonly #chain: UtxoChain;
  readonly #key: ExtendedKey;
  readonly #coin: Coin;

  constructor({ chain: network, url, user, password, cookieFile, xpub, confirmations, pollSeconds }: Settings) {
    if ((cookieFile === undefined) === (user === undefined || password === undefined))
      throw new Error('either cookieFile or both user and password are required');
    const chain = CHAINS[network]!;
    const credentials = () => (cookieFile ? readFileSync(cookieFile, 'utf8').trim() : `${user}:${password}`);
    this.#chain = chain;
    this.#key = new ExtendedKey(xpub, chain.versions);
    this.#coin = {
      code: chain.code,
      name: chain.name,
      network,
      decimals: 8,
      pegged: false,
      confirmationsRequired: confirmations ?? chain.confirmations,
    };
    const nodes = new Nodes([new UtxoReader({ network, chain, url, credentials })]);
    this.chains = [{ network, pollSeconds, staleSeconds: chain.staleSeconds, nodes }];
  }

  coins(): readonly Coin[] {
    return [this.#coin];
  }

  /** Chains with the same key share its numbers. */
  depositSource(): string {
    return this.#key.source;
  }

  async open({ amountCrypto }: Invoice, deposit: number): Promise<PaymentTarget> {
    const walletAddress = this.#chain.addressOf(this.#key.publicKey(deposit));
    // BIP 21.
    return { walletAddress, paymentUri: `${this.#chain.scheme}:${walletAddress}?amount=${amountCrypto}` };
  }

  spell(address: string): string | undefined {
    return this.#chain.spell(address);
  }

  async reachable(signal: AbortSignal): Promise<boolean> {
    await this.chains[0].nodes.ask(signal, (node) => node.head(signal));
    return true;
  }
}

export const UTXO: GatewayKind<Settings> = {
  schema: closedObject(['chain', 'url', 'xpub'], {
    chain: { enum: Object.keys(CHAINS) },
    url: { type: 'string', pattern: '^https?://' },
    user: { type: 'string', minLength: 1 },
    password: { type: 'string', minLength: 1 },
    cookieFile: { type: 'string', minLength: 1 },
    xpub: { type: 'string' },
    confirmations: { type: 'integer', minimum: 1, maximum: 900 },
    pollSeconds: { type: 'number', exclusiveMinimum: 0, maximum: 60, default: 5 },
  }),
  open: (settings) => new UtxoPayments(settings),
};
