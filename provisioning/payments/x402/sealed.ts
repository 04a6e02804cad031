/** The authorization of a payment in its row, whose signature is sealed. */
import { SEALED_PAYMENT, type X402Payment } from '../../../entities/payments/x402-authorization.ts';
import type { Vault } from '../../../entities/secrets.ts';
import type { Authorization, AuthorizationKey } from '../drivers/x402/driver.ts';
import type { SignedPayment } from './message.ts';

type Signed = Pick<SignedPayment, 'authorization' | 'signature'>;

/** Seals the start of the validity and the signature. */
export const sealPayment = (vault: Vault, { authorization, signature }: Signed, id: string): Buffer =>
  SEALED_PAYMENT.seal(vault, `${authorization.validAfter} ${signature}`, id);

/** Opens the sealed signature of a payment, with its authorization. */
export function openPayment(vault: Vault, row: X402Payment): Signed {
  const { payer, payTo, amountMicros, validBefore, nonce } = authorizationKeyOf(row);
  const opened = SEALED_PAYMENT.open(vault, row.sealedPayment!, row.id);
  const [validAfter, signature] = opened.split(' ') as [string, `0x${string}`];
  const authorization = {
    from: payer,
    to: payTo,
    nonce,
    value: amountMicros,
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore.getTime()) / 1000n,
  } as Authorization;
  return { authorization, signature };
}

/** The unit of the token is a micro-USD. */
export const authorizationKeyOf = ({ address: payTo, units, ...row }: X402Payment): AuthorizationKey => ({
  ...row,
  payTo,
  amountMicros: BigInt(units),
});
