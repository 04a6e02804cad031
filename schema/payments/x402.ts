/** The arguments of a paid request. */
import { builder, enumType } from '../builder.ts';

const RequestedPayment = enumType('RequestedPayment', 'The requested way of payment.', ['X402']);

export const paymentArgs = () =>
  builder.args((t) => ({
    mode: t.field({ type: RequestedPayment, description: 'Asks to pay by x402, independent of the balance.' }),
    signature: t.field({ type: 'X402Payment', description: 'A signed payment, version 2 of x402.' }),
    payment: t.field({ type: 'X402Payment', description: 'A signed payment, version 1 of x402.' }),
  }));
