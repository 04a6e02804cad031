/** Coins of an EVM chain: its tokens (ERC-20) and its native coin. Each top-up has its own address. */
import { ECDH } from 'node:crypto';
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
import { EvmReader } from './reader.ts';

interface NamedCoin {
  code: string;
  name: string;
  decimals: number;
  pegged: boolean;
}
interface Token extends NamedCoin {
  contract: string;
  codeHash?: string;
}
interface Settings {
  network: string;
  chainId: number;
  urls: string[];
  xpub: string;
  confirmations: number;
  native?: NamedCoin;
  tokens: Token[];
  pollSeconds: number;
  staleSeconds: number;
  batchMax: number;
  rangeMax: number;
}

const XPUB = 0x0488b21e;

export class EvmPayments implements PaymentDriver {
  readonly name = 'evm';
  readonly simulated = false;
  readonly chains: readonly [ChainReader];
  readonly #settings: Settings;
  readonly #key: ExtendedKey;
  readonly #coins: readonly Coin[];

  constructor(settings: Settings) {
    const { network, chainId, urls, xpub, confirmations, native, tokens } = settings;
    const { pollSeconds, staleSeconds, batchMax, rangeMax } = settings;
    const contracts = new Map(tokens.map((token) => [token.contract.toLowerCase(), token]));
    if (contracts.size < tokens.length) throw new Error('two tokens have the same contract');
    if (!native && !tokens.length) throw new Error('it has neither tokens nor the native coin');
    this.#settings = settings;
    this.#key = new ExtendedKey(xpub, [XPUB]);
    this.#coins = [...(native ? [native] : []), ...tokens].map(({ code, name, decimals, pegged }) => ({
      code,
      name,
      network,
      decimals,
      pegged,
      confirmationsRequired: confirmations,
    }));
    const chain = { network, chainId, batchMax, rangeMax, native: native?.code, tokens: contracts };
    const nodes = new Nodes(urls.map((url) => new EvmReader({ ...chain, url })));
    this.chains = [{ network, pollSeconds, staleSeconds, nodes }];
  }

  coins(): readonly Coin[] {
    return this.#coins;
  }

  /** Chains with the same key share its numbers, so they never give out the same address. */
  depositSource(): string {
    return this.#key.source;
  }

  async depositAddress(deposit: number): Promise<string> {
    // Loads on demand, because loading takes an eighth of a second.
    const { publicKeyToAddress } = await import('viem/utils');
    const key = ECDH.convertKey(
      Buffer.from(this.#key.publicKey(deposit)),
      'secp256k1',
      undefined,
      'hex',
      'uncompressed',
    );
    return publicKeyToAddress(`0x${key as string}`);
  }

  async open({ coin, amountCrypto }: Invoice, deposit: number): Promise<PaymentTarget> {
    const { parseUnits } = await import('viem/utils');
    const { chainId, tokens } = this.#settings;
    const walletAddress = await this.depositAddress(deposit);
    const { decimals } = this.#coins.find(({ code }) => code === coin)!;
    const units = parseUnits(amountCrypto, decimals);
    const contract = tokens.find(({ code }) => code === coin)?.contract;
    // EIP-681.
    const paymentUri = contract
      ? `ethereum:${contract}@${chainId}/transfer?address=${walletAddress}&uint256=${units}`
      : `ethereum:${walletAddress}@${chainId}?value=${units}`;
    return { walletAddress, paymentUri };
  }

  async reachable(signal: AbortSignal): Promise<boolean> {
    await this.chains[0].nodes.ask(signal, (node) => node.head(signal));
    return true;
  }
}

const COIN = {
  code: { type: 'string', pattern: '^[A-Z0-9]+(-[A-Z0-9]+)*$', maxLength: 20 },
  name: { type: 'string', minLength: 1, maxLength: 60 },
  pegged: { type: 'boolean', default: false },
};
const POSITIVE = { type: 'integer', minimum: 1 };

export const EVM: GatewayKind<Settings> = {
  schema: closedObject(['network', 'chainId', 'urls', 'xpub', 'confirmations'], {
    network: { type: 'string', pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 40 },
    chainId: POSITIVE,
    urls: { type: 'array', minItems: 1, items: { type: 'string', pattern: '^https?://' } },
    xpub: { type: 'string' },
    confirmations: { ...POSITIVE, maximum: 900 },
    native: closedObject(['code', 'name'], {
      ...COIN,
      decimals: { type: 'integer', minimum: 0, maximum: 36, default: 18 },
    }),
    tokens: {
      type: 'array',
      default: [],
      items: closedObject(['code', 'name', 'contract', 'decimals'], {
        ...COIN,
        contract: { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' },
        codeHash: { type: 'string', pattern: '^[0-9a-f]{64}$' },
        decimals: { type: 'integer', minimum: 0, maximum: 36 },
      }),
    },
    pollSeconds: { type: 'number', exclusiveMinimum: 0, maximum: 60, default: 2 },
    staleSeconds: { ...POSITIVE, maximum: 7200, default: 300 },
    batchMax: { ...POSITIVE, maximum: 100, default: 10 },
    rangeMax: { ...POSITIVE, maximum: 10_000, default: 100 },
  }),
  open: (settings) => new EvmPayments(settings),
};
