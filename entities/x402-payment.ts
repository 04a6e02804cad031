/**
 * x402 payments: each is a signed authorization (EIP-3009) to move USDC, and known by its network, payer and nonce: that
 * is how the chain knows it, too. The row is written before anybody asks the chain to move the money.
 */
import type { Queryable, Transaction } from './database.ts';
import { bigint, bytes, columnsOf, entity, key, now, nullable, oneOf, type RowOf, text, timestamp } from './entity.ts';
import { available, gateway, post } from './ledger.ts';

export const X402Payment = entity(
  'x402_payment',
  {
    id: key(),
    accountId: text(),
    /** CAIP-2, such as eip155:84532. */
    network: text(),
    /** Lower-case, as the address of the asset and of the payee. */
    payer: text(),
    /** Lower-case hexadecimal, 32 bytes. */
    nonce: text(),
    asset: text(),
    payTo: text(),
    amountMicros: bigint(),
    /** From then on the chain refuses it. */
    validBefore: timestamp(),
    /** SHA-256 of the signature: who repeats the payment has to have it. */
    signatureDigest: bytes(),
    /** The signature, and from when it is good, sealed: while the chain has not decided. */
    sealedPayment: nullable(bytes()),
    /** What was asked for with it, as an HMAC. */
    requestMac: bytes(),
    /** SETTLED: the chain has moved it, and the balance has it. FAILED: the chain will never move it. */
    status: oneOf('SETTLING', 'SETTLED', 'FAILED'),
    txId: nullable(text()),
    /** The server or top-up that was made of it. */
    orderNumber: nullable(text()),
    /** The API key that spends it, if one does. */
    credentialId: nullable(text()),
    /** The first answer, sealed; for whoever sends the same again within a day. */
    sealedAnswer: nullable(bytes()),
    /** The request that is at it, until when nobody else is. */
    leasedBy: nullable(text()),
    leaseUntil: timestamp(),
    createdAt: now(),
  },
  [
    { name: 'x402_payment_nonce', columns: ['network', 'payer', 'nonce'], unique: true },
    { name: 'x402_payment_answered', columns: ['createdAt'], where: 'sealed_answer is not null' },
  ],
);
export type X402Payment = RowOf<typeof X402Payment>;

/** The row as a transaction sees it, which nobody else changes meanwhile. */
export async function lockPayment(tx: Queryable, id: string): Promise<X402Payment> {
  const [row] = await tx.query<X402Payment>(
    `select ${columnsOf(X402Payment)} from x402_payment where id = $1 for update`,
    [id],
  );
  return row!;
}

/** The chain has moved the money of a payment whose row is locked. */
export const settlePayment = (tx: Queryable, id: string, txId: string): Promise<unknown> =>
  tx.query(`update x402_payment set status = 'SETTLED', tx_id = $2, sealed_payment = null where id = $1`, [id, txId]);

/** Keeps the answer of a payment whose row is locked. With a transaction id, the chain has moved its money. */
export const answerPayment = (
  tx: Queryable,
  id: string,
  { orderNumber, sealedAnswer, txId }: { orderNumber: string; sealedAnswer: Buffer; txId: string | undefined },
): Promise<unknown> =>
  tx.query(
    `update x402_payment set order_number = $2, sealed_answer = $3, leased_by = null, lease_until = now(),
      tx_id = coalesce($4, tx_id), status = case when $4::text is null then status else 'SETTLED' end,
      sealed_payment = case when $4::text is null then sealed_payment end
    where id = $1`,
    [id, orderNumber, sealedAnswer, txId ?? null],
  );

/**
 * Credits what the chain has moved, once: the transfer is known as the chain knows the payment. Its account is the
 * network's, so that it equals what has come to the payee there.
 */
export async function creditPayment(
  tx: Transaction,
  { accountId, network, payer, nonce, amountMicros }: X402Payment,
  orderNumber?: string,
): Promise<void> {
  await post(tx, accountId, [
    {
      kind: 'topup',
      debit: gateway(`x402:${network}`),
      credit: available(accountId),
      amountMicros,
      externalKey: `x402:${network}:${payer}:${nonce}`,
      ...(orderNumber !== undefined && { orderNumber }),
      description: 'Payment by x402',
    },
  ]);
}
