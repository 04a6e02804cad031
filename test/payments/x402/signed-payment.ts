/** An x402 payment for the driver, signed for the driver's own requirements. */
import { ExactEvmScheme } from '@x402/evm/exact/client';
import type { Hex, LocalAccount } from 'viem';
import type { Authorization } from '../../../provisioning/payments/drivers/x402/driver.ts';
import type { EvmX402 } from '../../../provisioning/payments/drivers/x402/evm.ts';
import { PAY_TO } from '../payments-file.ts';
import { newPayer } from './clients.ts';

export const AMOUNT = 6_000_000n;

/** The signing key and its address. */
export type Signer = Pick<LocalAccount, 'address' | 'signTypedData'>;

export async function signedPayment(driver: EvmX402, payer: Signer = newPayer()) {
  const { terms } = driver;
  const accepted = { ...terms, scheme: 'exact', amount: String(AMOUNT), maxTimeoutSeconds: 300, extra: terms.domain };
  const { payload } = await new ExactEvmScheme(payer as LocalAccount).createPaymentPayload(2, accepted as never);
  const { signature, authorization: a } = payload as { signature: Hex; authorization: Record<string, string> };
  const authorization = {
    ...{ from: a.from, to: a.to, nonce: a.nonce },
    ...{ value: BigInt(a.value!), validAfter: BigInt(a.validAfter!), validBefore: BigInt(a.validBefore!) },
  } as Authorization;
  const key = {
    ...{ payer: a.from!.toLowerCase(), nonce: a.nonce!, payTo: PAY_TO, amountMicros: AMOUNT, createdAt: new Date() },
    validBefore: new Date(Number(a.validBefore) * 1000),
  };
  return { payer, authorization, signature, key };
}
