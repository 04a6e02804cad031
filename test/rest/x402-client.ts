/** Real clients of x402, with throw-away keys. */
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { LocalAccount } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';

export const newPayer = (): LocalAccount => privateKeyToAccount(generatePrivateKey());

/** The official client as it is published; it refuses to pay more than a dollar unless it is told to. */
export function x402Fetch(signer: LocalAccount = newPayer(), send: typeof fetch = fetch): typeof fetch {
  const client = new x402Client().setSpendControls({ maxAmountPerPayment: '$10000' });
  registerExactEvmScheme(client, { signer });
  return wrapFetchWithPayment(send, client) as typeof fetch;
}

/** Sends what a client of version 1 would see: it pays by X-PAYMENT then. */
export const withoutVersion2: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  const headers = new Headers(answer.headers);
  headers.delete('payment-required');
  return new Response(await answer.text(), { status: answer.status, headers });
};
