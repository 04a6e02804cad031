/**
 * Simulated settlement. The driver verifies signatures, and moves no coin. The challenge is that of Base Sepolia, a test
 * network, so real clients pay it unchanged. The payee's address has no known key. The driver keeps one file for each
 * settled authorization. So it settles none twice, and a restart forgets none.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  AUTHORIZATION_TYPE,
  type Authorization,
  type AuthorizationKey,
  type Settlement,
  type Settling,
  type X402Driver,
  type X402Terms,
} from './driver.ts';
import { BASE_SEPOLIA } from './evm.ts';

const CHAIN_ID = 84_532;

export class SimulatedX402 implements X402Driver {
  readonly name = 'simulated';
  readonly simulated = true;
  readonly terms: X402Terms = {
    ...BASE_SEPOLIA,
    payTo: '0x5117aced5117aced5117aced5117aced5117aced',
  };
  readonly #folder: string;

  constructor({ folder }: { folder: string }) {
    this.#folder = folder;
  }

  async verify(authorization: Authorization, signature: `0x${string}`): Promise<string | undefined> {
    return (await this.isSigned(authorization, signature)) ? undefined : 'invalid_exact_evm_signature';
  }

  async isSigned(message: Authorization, signature: `0x${string}`): Promise<boolean> {
    // Loads on demand, because loading takes an eighth of a second.
    const { verifyTypedData } = await import('viem/utils');
    const { asset: verifyingContract, domain } = this.terms;
    return verifyTypedData({
      address: message.from,
      domain: { ...domain, chainId: CHAIN_ID, verifyingContract },
      types: AUTHORIZATION_TYPE,
      primaryType: 'TransferWithAuthorization',
      message,
      signature,
    }).catch(() => false);
  }

  async settle({ from, nonce }: Authorization): Promise<Settling> {
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(this.#file({ payer: from, nonce }), '');
    return {};
  }

  async observe(key: Omit<AuthorizationKey, 'createdAt'>): Promise<Settlement> {
    if (existsSync(this.#file(key))) return { state: 'settled', txId: txIdOf(key) };
    return { state: key.validBefore.getTime() <= Date.now() ? 'dead' : 'open' };
  }

  async isFinal(): Promise<boolean> {
    return true;
  }

  #file({ payer, nonce }: Pick<AuthorizationKey, 'payer' | 'nonce'>): string {
    return join(this.#folder, `${payer}-${nonce}`.toLowerCase());
  }
}

const txIdOf = ({ payer, nonce }: Pick<AuthorizationKey, 'payer' | 'nonce'>) =>
  `0x${createHash('sha256').update(`transaction ${payer} ${nonce}`.toLowerCase()).digest('hex')}`;
