/** The arguments by which a request is paid for by x402. Over REST they are headers. */
import { builder } from '../builder.ts';

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
