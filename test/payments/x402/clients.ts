/** Real x402 clients with throw-away keys. */
import { encodePaymentSignatureHeader } from '@x402/core/http';
import { ExactEvmScheme, registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { LocalAccount } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import type { Answer } from '../../setup/spawn.ts';

export const newPayer = (): LocalAccount => privateKeyToAccount(generatePrivateKey());

/** Returns the published client. By default it would refuse to pay more than a dollar. */
export function x402Fetch(signer: LocalAccount = newPayer(), send: typeof fetch = fetch): typeof fetch {
  const client = new x402Client().setSpendControls({ maxAmountPerPayment: '$10000' });
  registerExactEvmScheme(client, { signer });
  return wrapFetchWithPayment(send, client) as typeof fetch;
}

/** Hides version 2 of the protocol from the client, which then pays by X-PAYMENT. */
export const withoutVersion2: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  const headers = new Headers(answer.headers);
  headers.delete('payment-required');
  return new Response(await answer.text(), { status: answer.status, headers });
};

/** The parts of a payment that a test may get wrong. */
export interface Signed {
  accepted: Record<string, unknown>;
  payload: { signature: string; authorization: Record<string, string> };
}

/** Signs the requirements of a challenge, after `change` has altered them. */
export async function sign(
  challenge: Answer,
  {
    payer = newPayer(),
    change = (accepted) => accepted,
  }: {
    payer?: LocalAccount;
    change?: (accepted: Record<string, unknown>) => Record<string, unknown>;
  } = {},
): Promise<Signed> {
  const { accepts } = JSON.parse(Buffer.from(challenge.headers.get('payment-required')!, 'base64').toString());
  const accepted = change(accepts[0]);
  const { payload } = await new ExactEvmScheme(payer).createPaymentPayload(2, accepted as never);
  return { accepted, payload: payload as Signed['payload'] };
}

export const version2 = ({ accepted, payload }: Signed) => ({
  'payment-signature': encodePaymentSignatureHeader({ x402Version: 2, accepted, payload } as never),
});
export const version1 = ({ payload }: Signed, network = 'base-sepolia') => ({
  'x-payment': encodePaymentSignatureHeader({
    x402Version: 1,
    scheme: 'exact',
    network,
    payload,
  } as never),
});
