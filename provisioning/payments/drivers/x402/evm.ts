/**
 * Payment by x402 on a real EVM chain, in a token with EIP-3009 such as USDC. Either a gas wallet of this process or a remote
 * facilitator settles. The driver trusts only the chain.
 */
import { closedObject } from '../driver.ts';
import type { X402Chain } from './chain.ts';
import type { AuthorizationKey, X402Driver, X402Health, X402Terms } from './driver.ts';
import type { Facilitator } from './facilitator.ts';

/** The block `x402` of the gateways file. */
export interface EvmX402Settings extends Partial<X402Terms> {
  network: string;
  payTo: `0x${string}`;
  rpcUrls: string[];
  gasKeyFile?: string;
  facilitatorUrl?: string;
  facilitatorHeaders: Record<string, string>;
  walletFactories: string[];
  confirmations: number;
  safeAboveUsd: number;
  settleSeconds: number;
  logBlocks: number;
  staleSeconds: number;
  gasReserve: number;
  revertedGasMax: number;
}

const ADDRESS = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' };

/** JSON Schema (2020-12) of the block `x402`. */
export const EVM_X402_SCHEMA = closedObject(['network', 'payTo', 'rpcUrls'], {
  network: { type: 'string', pattern: '^(base|base-sepolia|eip155:[1-9][0-9]{0,14})$' },
  networkV1: { type: 'string' },
  asset: ADDRESS,
  domain: closedObject(['name', 'version'], { name: { type: 'string' }, version: { type: 'string' } }),
  coin: { type: 'string', pattern: '^[A-Z0-9]{2,10}(-[A-Z0-9]{1,10})?$' },
  payTo: ADDRESS,
  rpcUrls: { type: 'array', minItems: 1, items: { type: 'string', pattern: '^https?://' } },
  gasKeyFile: { type: 'string', pattern: '^/' },
  facilitatorUrl: { type: 'string', pattern: '^https?://' },
  facilitatorHeaders: { type: 'object', additionalProperties: { type: 'string' }, default: {} },
  walletFactories: { type: 'array', items: ADDRESS, default: [] },
  confirmations: { type: 'integer', minimum: 1, maximum: 1000, default: 1 },
  safeAboveUsd: { type: 'number', minimum: 0, default: 1000 },
  settleSeconds: { type: 'number', minimum: 0.1, maximum: 60, default: 15 },
  logBlocks: { type: 'integer', minimum: 1, maximum: 100_000, default: 1000 },
  staleSeconds: { type: 'integer', minimum: 1, maximum: 7200, default: 300 },
  gasReserve: { type: 'integer', minimum: 1, default: 500 },
  revertedGasMax: { type: 'integer', minimum: 1, default: 1_000_000 },
});

type Known = Omit<X402Terms, 'payTo'>;
const BASE: Known = {
  network: 'eip155:8453',
  networkV1: 'base',
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  domain: { name: 'USD Coin', version: '2' },
  coin: 'USDC-BASE',
};
/** A test network. */
export const BASE_SEPOLIA: Known = {
  network: 'eip155:84532',
  networkV1: 'base-sepolia',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  domain: { name: 'USDC', version: '2' },
  coin: 'USDC-BASE',
};
const KNOWN: readonly Known[] = [BASE, BASE_SEPOLIA];

/** @throws Error if the settings of an unknown network are incomplete */
function termsOf({ network: named, payTo, asset, domain, coin, networkV1 }: EvmX402Settings): X402Terms {
  const known = KNOWN.find((one) => one.network === named || one.networkV1 === named);
  const terms = {
    network: known?.network ?? named,
    networkV1: networkV1 ?? known?.networkV1,
    asset: asset ?? known?.asset,
    domain: domain ?? known?.domain,
    coin: coin ?? known?.coin,
    payTo,
  };
  const missing = (['asset', 'domain', 'coin'] as const).find((name) => terms[name] === undefined);
  if (missing) throw new Error(`${named} is not a known network, so ${missing} is required.`);
  return terms as X402Terms;
}

interface Opened {
  chain: X402Chain;
  facilitator: Facilitator;
}

export class EvmX402 implements X402Driver {
  readonly name = 'evm';
  readonly simulated = false;
  readonly terms: X402Terms;
  readonly revertedGasMax: number;
  readonly #settings: EvmX402Settings;
  #opening: Promise<Opened> | undefined;

  /** Makes no calls. @throws Error that names the fault in the settings */
  constructor(settings: EvmX402Settings) {
    if ((settings.gasKeyFile === undefined) === (settings.facilitatorUrl === undefined))
      throw new Error('Exactly one of gasKeyFile and facilitatorUrl is required.');
    this.#settings = settings;
    this.revertedGasMax = settings.revertedGasMax;
    this.terms = termsOf(settings);
  }

  verify: X402Driver['verify'] = async (...given) => (await this.#open()).facilitator.verify(...given);
  settle: X402Driver['settle'] = async (...given) => (await this.#open()).facilitator.settle(...given);
  isSigned: X402Driver['isSigned'] = async (...given) => (await this.#open()).chain.isSigned(...given);
  observe: X402Driver['observe'] = async (...given) => (await this.#open()).chain.observe(...given);
  observeSubmitted = async (key: AuthorizationKey) => (await this.#open()).chain.observeSubmitted(key);
  isFinal: X402Driver['isFinal'] = async (txId) => (await this.#open()).chain.isFinal(txId);
  payeeBalance = async () => (await this.#open()).chain.payeeBalance();
  revertedGas = async (txId: string) => (await this.#open()).chain.revertedGas(txId);

  /** Reads the key of the gas wallet. */
  async prepare(): Promise<void> {
    await this.#open();
  }

  async health(signal: AbortSignal): Promise<X402Health> {
    const { chain, facilitator } = await this.#open();
    if (!(await chain.isRight(signal)))
      return { reachable: false, warning: 'The node belongs to another chain than the configured one.' };
    const stoppedAt = await chain.stoppedAt();
    if (stoppedAt)
      return { reachable: false, warning: `The newest block of the nodes is of ${stoppedAt.toISOString()}.` };
    return facilitator.health(signal);
  }

  /** Loads the client on demand, because loading takes a third of a second. */
  #open(): Promise<Opened> {
    this.#opening ??= this.#load().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #load(): Promise<Opened> {
    const { terms } = this;
    const settings = this.#settings;
    const [{ X402Chain }, { localFacilitator, remoteFacilitator }] = await Promise.all([
      import('./chain.ts'),
      import('./facilitator.ts'),
    ]);
    const chain = new X402Chain(terms, settings);
    const { gasKeyFile, facilitatorUrl } = settings;
    const facilitator = gasKeyFile
      ? localFacilitator(terms, chain, { ...settings, gasKeyFile })
      : remoteFacilitator(terms, { ...settings, facilitatorUrl: facilitatorUrl! });
    return { chain, facilitator };
  }
}
