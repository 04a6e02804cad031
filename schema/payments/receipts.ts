/** Receipts of a payment or a month. */
import { type Receipt, receiptOfMonth, receiptOfTopUp } from '../../resolvers/payments/receipts.ts';
import { builder, objectType } from '../builder.ts';

const ReceiptLineType = objectType<Receipt['lines'][number]>('ReceiptLine', 'A line of a receipt.', (t) => ({
  at: t.expose('at', { type: 'DateTime', description: 'The time of the change.' }),
  description: t.exposeString('description', { description: 'The change, in words.' }),
  orderNumber: t.exposeString('orderNumber', {
    nullable: true,
    description: 'The server or the top-up of the change.',
  }),
  amountUsd: t.expose('amountMicros', { type: 'Usd', description: 'The amount; negative if it left the balance.' }),
  coin: t.exposeString('coin', { nullable: true, description: 'The coin of a payment.' }),
  amountCrypto: t.exposeString('amountCrypto', {
    nullable: true,
    description: 'The payment, in its coin. Negative if its chain removed it.',
  }),
  network: t.exposeString('network', { nullable: true, description: 'The network of a payment.' }),
  txId: t.exposeString('txId', { nullable: true, description: 'The transaction of a payment.' }),
}));
const ReceiptType = objectType<Receipt>('Receipt', 'The changes of the balance by a payment or in a month.', (t) => ({
  number: t.exposeString('number', { description: 'The order number of the top-up, or the month.' }),
  accountId: t.exposeID('accountId', { description: 'The account of the receipt.' }),
  from: t.expose('from', { type: 'DateTime', description: 'The beginning of the range.' }),
  to: t.expose('to', { type: 'DateTime', description: 'The end of the range.' }),
  issuedAt: t.expose('issuedAt', { type: 'DateTime', description: 'When the service wrote the receipt.' }),
  totalUsd: t.expose('totalMicros', { type: 'Usd', description: 'The sum of all changes.' }),
  lines: t.expose('lines', { type: [ReceiptLineType], description: 'The first 1,000 changes.' }),
}));

builder.queryFields((t) => ({
  receipt: t.field({
    type: ReceiptType,
    scope: 'read',
    description: 'The receipt of a confirmed top-up.',
    args: { orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the top-up.' }) },
    resolve: (_, { orderNumber }, context) => receiptOfTopUp(context, orderNumber),
  }),
  monthlyReceipt: t.field({
    type: ReceiptType,
    scope: 'read',
    description: 'The receipt of a month: all changes of the balance.',
    args: { month: t.arg({ type: 'Month', required: true, description: 'The month, in UTC.' }) },
    resolve: (_, { month }, context) => receiptOfMonth(context, month),
  }),
}));
