/** Checks the address of a payout. */
import { type Payout, payoutSentence } from '../../../entities/payments/payout.ts';

type Addressed = Pick<Payout, 'accountId' | 'address' | 'network' | 'signature'>;

/** Returns the field of a wrong address or signature, with the reason; undefined: both are right. */
export async function faultOfAddress(
  given: Addressed,
  isEvm: boolean,
): Promise<{ field: 'address' | 'signature'; message: string } | undefined> {
  const { address, signature } = given;
  if (!isEvm)
    return signature === null
      ? undefined
      : { field: 'signature', message: 'Only addresses of EVM networks sign. Leave out the signature.' };
  // Loads on demand, because loading takes an eighth of a second.
  const { isAddress, recoverMessageAddress } = await import('viem/utils');
  if (!isAddress(address)) return { field: 'address', message: 'address is no address of an EVM network.' };
  if (signature === null) return undefined;
  const message = payoutSentence(given);
  const signer = await recoverMessageAddress({ message, signature: signature as `0x${string}` }).catch(() => undefined);
  if (signer?.toLowerCase() === address.toLowerCase()) return undefined;
  return { field: 'signature', message: `The address has not signed this sentence (EIP-191): ${message}` };
}
