/** Payments by x402: the arguments of a paid request, and the payments for the operator. */
import type { X402Payment } from '../../entities/payments/x402-payment.ts';
import {
  assignX402Payment,
  listX402Payments,
  writeOffX402Payment,
  X402_STATUSES,
} from '../../resolvers/payments/x402-payments.ts';
import { builder, enumType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const X402Status = enumType(
  'X402PaymentStatus',
  'SETTLING: not known yet. SETTLED: in the balance. FAILED: never moved. UNMATCHED: moved before the service received it, in suspense. REVERSED: removed by its chain after the credit. WRITTEN_OFF: given up by the operator.',
  X402_STATUSES,
);
const X402PaymentType = objectType<X402Payment>(
  'PaymentByX402',
  'A payment by x402. Its network, payer and nonce identify it.',
  (t) => ({
    id: t.exposeID('id'),
    network: t.exposeString('network', { description: 'The network as in CAIP-2, such as eip155:8453.' }),
    payer: t.exposeString('payer'),
    nonce: t.exposeString('nonce'),
    accountId: t.exposeID('accountId', { description: 'The account that sent it.' }),
    orderNumber: t.exposeID('orderNumber', { nullable: true, description: 'The server or top-up that it paid for.' }),
    amountUsd: t.expose('amountMicros', { type: 'Usd' }),
    status: t.expose('status', { type: X402Status }),
    txId: t.exposeString('txId', { nullable: true, description: 'The transaction that moved it.' }),
    reversedUsd: t.expose('reversedMicros', {
      type: 'Usd',
      description: 'The part that the service took out of the balance after the reversal.',
    }),
    finalAt: t.expose('finalAt', { type: 'DateTime', nullable: true, description: 'When its block became final.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
);
const X402PaymentPage = pageOf('PaymentByX402', X402PaymentType);

builder.queryFields((t) => ({
  x402Payments: t.field({
    type: X402PaymentPage,
    scope: 'operator',
    description:
      'Payments by x402 of all accounts, newest first. The operator decides about UNMATCHED and REVERSED ones.',
    args: {
      ...pageArgs(),
      status: t.arg({ type: X402Status, description: 'Only payments in this state.' }),
    },
    resolve: (_, { status, ...page }, context) => listX402Payments(context, page, status),
  }),
}));

builder.mutationFields((t) => ({
  assignX402Payment: t.field({
    type: X402PaymentType,
    scope: 'operator',
    description: 'Assigns a payment that the chain had moved before the service received it.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of an unmatched payment by x402.' }),
      accountId: t.arg({ type: 'ID', required: true, description: 'The id of an account.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, kept with the event.' }),
    },
    resolve: (_, { id, ...given }, context) => assignX402Payment(context, id, given),
  }),
  writeOffX402Payment: t.field({
    type: X402PaymentType,
    scope: 'operator',
    description: 'Writes off a reversed or unmatched payment.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of a reversed or unmatched payment by x402.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, kept with the event.' }),
    },
    resolve: (_, { id, reason }, context) => writeOffX402Payment(context, id, reason),
  }),
}));

const RequestedPayment = enumType('RequestedPayment', 'The requested way of payment.', ['X402']);

export const paymentArgs = () =>
  builder.args((t) => ({
    mode: t.field({ type: RequestedPayment, description: 'Asks to pay by x402, independent of the balance.' }),
    signature: t.field({ type: 'X402Payment', description: 'A signed payment, version 2 of x402.' }),
    payment: t.field({ type: 'X402Payment', description: 'A signed payment, version 1 of x402.' }),
  }));
