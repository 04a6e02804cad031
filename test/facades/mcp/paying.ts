/** Calls tools like the MCP client of x402: first unpaid, and then with the requested payment. */
import { x402Client } from '@x402/core/client';
import { PaymentRequiredV2Schema } from '@x402/core/schemas';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import type { LocalAccount } from 'viem';
import { expect } from 'vitest';
import { newPayer } from '../../payments/x402/clients.ts';
import type { Agent } from './agents.ts';

export async function callPaid({ client }: Agent, name: string, args: object, payer: LocalAccount = newPayer()) {
  const unpaid = await client.callTool({ name, arguments: args });
  expect(unpaid.isError).toBe(true);
  expect(JSON.parse(unpaid.content[0].text)).toEqual(unpaid.structuredContent);
  const required = PaymentRequiredV2Schema.parse(unpaid.structuredContent);
  const payments = new x402Client().setSpendControls({ maxAmountPerPayment: '$10000' });
  registerExactEvmScheme(payments, { signer: payer });
  const payment = await payments.createPaymentPayload(required as never);
  const paid = await client.callTool({ name, arguments: args, _meta: { 'x402/payment': payment } });
  return { unpaid: unpaid.structuredContent, payment, paid };
}
