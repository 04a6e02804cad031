/** Payments by x402: the arguments of a paid request, and what the operator sees. */

import type { X402Payment } from '../../entities/payments/x402-payment.ts';
import {
  assignX402Payment,
  listX402Payments,
  writeOffX402Payment,
  X402_STATUSES,
} from '../../resolvers/payments/x402-payments.ts';
import { builder } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const X402Status = builder.enumType('X402PaymentStatus', {
  description:
    'Settling: nobody knows yet. Settled: in the balance. Failed: never moved. Unmatched: moved before it was sent to us, in suspense. Reversed: taken back after it was credited. Written off: that was decided on.',
  values: X402_STATUSES,
});
const X402PaymentType = builder.objectRef<X402Payment>('PaymentByX402').implement({
  description: 'A payment by x402, known by its network, its payer and its nonce.',
  fields: (t) => ({
    id: t.exposeID('id'),
    network: t.exposeString('network', { description: 'CAIP-2, such as eip155:8453.' }),
    payer: t.exposeString('payer'),
    nonce: t.exposeString('nonce'),
    accountId: t.exposeID('accountId', { description: 'Who sent it.' }),
    orderNumber: t.exposeID('orderNumber', {
      nullable: true,
      description: 'The server or top-up that was made of it.',
    }),
    amountUsd: t.expose('amountMicros', { type: 'Usd' }),
    status: t.expose('status', { type: X402Status }),
    txId: t.exposeString('txId', { nullable: true, description: 'The transaction that has moved it.' }),
    reversedUsd: t.expose('reversedMicros', { type: 'Usd', description: 'What was taken back out of the balance.' }),
    finalAt: t.expose('finalAt', {
      type: 'DateTime',
      nullable: true,
      description: 'Since when its chain cannot take it back.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
});
const X402PaymentPage = pageOf('PaymentByX402', X402PaymentType);

builder.queryFields((t) => ({
  x402Payments: t.field({
    type: X402PaymentPage,
    scope: 'operator',
    description: 'Payments by x402 of all accounts, newest first. Those to decide on are UNMATCHED or REVERSED.',
    args: {
      ...pageArgs(),
      status: t.arg({ type: X402Status, description: 'Only those in this state.' }),
    },
    resolve: (_, { status, ...page }, context) => listX402Payments(context, page, status),
  }),
}));

builder.mutationFields((t) => ({
  assignX402Payment: t.field({
    type: X402PaymentType,
    scope: 'operator',
    description: 'Gives a payment that had been made before it was sent to us to the account whose it is.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of an unmatched payment by x402.' }),
      accountId: t.arg({ type: 'ID', required: true, description: 'The id of an account.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'Kept with the event.' }),
    },
    resolve: (_, { id, ...given }, context) => assignX402Payment(context, id, given),
  }),
  writeOffX402Payment: t.field({
    type: X402PaymentType,
    scope: 'operator',
    description: 'Takes a payment out of the books that was taken back, or that nobody can have.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of a reversed or unmatched payment by x402.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'Kept with the event.' }),
    },
    resolve: (_, { id, reason }, context) => writeOffX402Payment(context, id, reason),
  }),
}));

const RequestedPayment = builder.enumType('RequestedPayment', {
  description: 'How a request is to be paid for.',
  values: ['X402'] as const,
});

export const paymentArgs = () =>
  builder.args((t) => ({
    mode: t.field({ type: RequestedPayment, description: 'Asks to pay by x402, whatever the balance is.' }),
    signature: t.field({ type: 'X402Payment', description: 'A signed payment, version 2 of x402.' }),
    payment: t.field({ type: 'X402Payment', description: 'A signed payment, version 1 of x402.' }),
  }));
