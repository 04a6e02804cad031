/**
 * x402 payments: each is a signed authorization (EIP-3009) to move USDC, and known by its network, payer and nonce: that
 * is how the chain knows it, too. The row is written before anybody asks the chain to move the money.
 */

import {
  bigint,
  bytes,
  columnsOf,
  defaulting,
  entity,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  timestamp,
} from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import { available, gateway, lockAccount, post } from './ledger.ts';

/**
 * - SETTLING: nobody knows yet whether the chain will move it;
 * - SETTLED: the chain has moved it, and the balance has it;
 * - FAILED: the chain will never move it;
 * - UNMATCHED: it had been moved before it was sent to us. Whoever can read the chain can send it, so it is in suspense, for
 *   the operator to decide;
 * - REVERSED: the chain has taken it back after it was credited, and will not move it again; what the balance still had is in
 *   suspense;
 * - WRITTEN_OFF: that was decided on.
 */
export const X402_STATUSES = ['SETTLING', 'SETTLED', 'FAILED', 'UNMATCHED', 'REVERSED', 'WRITTEN_OFF'] as const;
export type X402Status = (typeof X402_STATUSES)[number];

/** From each state, the states it can go to. */
export const X402_TRANSITIONS: Readonly<Record<X402Status, readonly X402Status[]>> = {
  SETTLING: ['SETTLED', 'FAILED', 'UNMATCHED'],
  SETTLED: ['REVERSED'],
  // The chain has moved it after all.
  FAILED: ['SETTLED'],
  // The operator has given it to an account.
  UNMATCHED: ['SETTLED', 'WRITTEN_OFF'],
  REVERSED: ['WRITTEN_OFF'],
  WRITTEN_OFF: [],
};

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
    /** The signature, and from when it is good, sealed: until the chain has decided for good. */
    sealedPayment: nullable(bytes()),
    /** What was asked for with it, as an HMAC. */
    requestMac: bytes(),
    status: oneOf(...X402_STATUSES),
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
    /** Since when the chain cannot take it back; null: it has not moved it, or still may. */
    finalAt: nullable(timestamp()),
    /** What was taken back out of the balance. */
    reversedMicros: defaulting(bigint(), 0),
    createdAt: now(),
  },
  [
    { name: 'x402_payment_nonce', columns: ['network', 'payer', 'nonce'], unique: true },
    { name: 'x402_payment_answered', columns: ['createdAt'], where: 'sealed_answer is not null' },
    { name: 'x402_payment_suspense', columns: ['id'], where: `status in ('UNMATCHED', 'REVERSED')` },
  ],
);
export type X402Payment = RowOf<typeof X402Payment>;

export async function findX402Payment(db: Queryable, id: string): Promise<X402Payment | undefined> {
  return (await db.query<X402Payment>(BY_ID, [id]))[0];
}

/** The row as a transaction sees it, locked until its end; the accounts, of its payer and others, are locked before it. */
export async function lockPayment(tx: Transaction, id: string, ...accountIds: string[]): Promise<X402Payment> {
  await lockAccount(tx, ...accountIds);
  return (await tx.query<X402Payment>(`${BY_ID} for update`, [id]))[0]!;
}
const BY_ID = `select ${columnsOf(X402Payment)} from x402_payment where id = $1`;

/** Moves a payment whose row is locked, by the table of its states. @throws Error if that has no such way */
export async function moveX402(
  tx: Queryable,
  { id, status }: Pick<X402Payment, 'id' | 'status'>,
  to: X402Status,
  set: Partial<Pick<X402Payment, 'txId' | 'reversedMicros' | 'accountId'>> = {},
): Promise<void> {
  requireWay(status, to);
  await tx.query(
    `update x402_payment set status = $2, tx_id = coalesce($3, tx_id), reversed_micros = coalesce($4, reversed_micros),
      account_id = coalesce($5, account_id),
      sealed_payment = case when $2 in ('SETTLING', 'SETTLED') then sealed_payment end
    where id = $1`,
    [id, to, set.txId ?? null, set.reversedMicros ?? null, set.accountId ?? null],
  );
}

/** The chain cannot take back a payment that it has moved by that transaction: whoever looks after it need not any more. */
export const finishPayment = (tx: Queryable, id: string, txId: string): Promise<unknown> =>
  tx.query(
    `update x402_payment set final_at = now(), tx_id = $2, sealed_payment = null where id = $1 and status = 'SETTLED'`,
    [id, txId],
  );

function requireWay(from: X402Status, to: X402Status): void {
  if (!X402_TRANSITIONS[from].includes(to)) throw new Error(`A payment that is ${from} cannot become ${to}.`);
}

/**
 * Keeps the answer of a payment whose row is locked. With a transaction id, the chain has moved its money: it is settled then,
 * in the same statement, because this is what a request waits for.
 * @throws Error if the table of states has no such way
 */
export async function answerPayment(
  tx: Queryable,
  { id, status }: Pick<X402Payment, 'id' | 'status'>,
  { orderNumber, sealedAnswer, txId }: { orderNumber: string; sealedAnswer: Buffer; txId: string | undefined },
): Promise<void> {
  if (txId !== undefined && status !== 'SETTLED') requireWay(status, 'SETTLED');
  await tx.query(
    `update x402_payment set order_number = $2, sealed_answer = $3, leased_by = null, lease_until = now(),
      tx_id = coalesce($4, tx_id), status = case when $4::text is null then status else 'SETTLED' end
    where id = $1`,
    [id, orderNumber, sealedAnswer, txId ?? null],
  );
}

/** By what the ledger knows a payment: as its chain does. */
export const x402Key = ({ network, payer, nonce }: Pick<X402Payment, 'network' | 'payer' | 'nonce'>): string =>
  `x402:${network}:${payer}:${nonce}`;

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
      externalKey: x402Key({ network, payer, nonce }),
      ...(orderNumber !== undefined && { orderNumber }),
      description: 'Payment by x402',
    },
  ]);
}
