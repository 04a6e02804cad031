/** Payouts of coins that came by x402. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { describe, expect, it } from 'vitest';
import { payoutSentence } from '../../../entities/payments/payout.ts';
import { NO_ANVIL } from '../drivers/evm/anvil.ts';
import { openX402World, type X402World } from './chain-world.ts';

const REQUEST = `mutation ($accountId: ID!, $address: Line!, $signature: Line, $key: Line!) {
  requestPayout(accountId: $accountId, coin: "USDC-BASE", amountUsd: 1, key: $key, address: $address, signature: $signature, reason: "x") { id } }`;
const NOT_FUNDED = 'The account can get 0 USD. Payouts leave out bonuses, and payments that are not final.';

describe.skipIf(NO_ANVIL)('A payout of coins by x402', async () => {
  const world = NO_ANVIL ? (undefined as unknown as X402World) : await openX402World();

  it('goes only to an address of its network, which may sign for it', async () => {
    const { id: accountId } = await world.newAccount();
    const signer = privateKeyToAccount(generatePrivateKey());
    const { address } = signer;
    const refusal = async (given: object) => {
      const { errors } = await world.operator(REQUEST, { accountId, key: accountId, ...given });
      return errors[0].message;
    };
    const [wrong] = [...address].filter((digit) => /[a-f]/i.test(digit));
    const swapped = wrong === wrong!.toLowerCase() ? wrong!.toUpperCase() : wrong!.toLowerCase();
    for (const given of ['not an address', `0x${address.slice(2).replace(wrong!, swapped)}`])
      expect(await refusal({ address: given })).toBe('address is no address of an EVM network.');
    const signature = await signer.signMessage({ message: payoutSentence({ accountId, address, network: 'base' }) });
    expect(await refusal({ address, signature: '0x00' })).toContain('The address has not signed this sentence');
    expect(await refusal({ address, signature })).toBe(NOT_FUNDED);
  });
});
