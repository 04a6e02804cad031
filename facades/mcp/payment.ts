/**
 * Payment by x402 within MCP, as its MCP transport specifies. An unpaid call gets an error with the payment requirements. The
 * client repeats it with a signed payment in `_meta`, and the result has the receipt in its `_meta`.
 */
import type { CallToolResult, ServerContext } from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import { isRecord } from '../compile/inputs.ts';
import type { Operation } from '../compile/operation.ts';
import type { Values } from '../compile/run.ts';

/** The member of `_meta` with a payment. */
export const PAYMENT = 'x402/payment';
const RECEIPT = 'x402/payment-response';
/** The limit of an encoded payment, as of the header in REST. */
export const PAYMENT_MAX = 16_384;

/** The payment of one call. */
export interface ToolPayment {
  /** The payment of a call, as variables of the operation. @throws ApiError invalid_payment */
  values(args: Values, request: ServerContext): Values;
  /** Receives the headers of REST, of which one is the receipt. */
  setHeader(name: string, value: string): void;
  /** Adds the receipt to a result, if there is one. */
  withReceipt(result: CallToolResult): CallToolResult;
}

/** Makes the payments of an operation's calls; undefined if the operation takes no payment by x402. */
export function paymentsOf({ parameters, tool }: Operation): (() => ToolPayment) | undefined {
  const variableOf = (name: string) => parameters.find(({ header }) => header === name)?.variable;
  const [signature, mode] = [variableOf('PAYMENT-SIGNATURE'), variableOf('X-Payment-Mode')];
  if (!signature) return undefined;
  const { paidWithout } = tool!;
  return () => {
    let receipt: unknown;
    return {
      values: (args, { mcpReq }) => {
        const payment = mcpReq._meta?.[PAYMENT];
        if (payment !== undefined) return { [signature]: encoded(payment) };
        return mode && paidWithout && (args[paidWithout] ?? null) === null ? { [mode]: 'X402' } : {};
      },
      setHeader: (name, value) => {
        if (name === 'payment-response') receipt = decoded(value);
      },
      withReceipt: (result) => (receipt ? { ...result, _meta: { [RECEIPT]: receipt } } : result),
    };
  };
}

/** Adds the payment requirements of x402, version 2, to an error. REST sends them in a header. */
export function withRequirements(body: Readonly<Values>, headers: Readonly<Record<string, string>>): Readonly<Values> {
  const required = headers['payment-required'];
  return required ? { ...body, ...(decoded(required) as Values) } : body;
}

function encoded(payment: unknown): string {
  const text = isRecord(payment) ? Buffer.from(JSON.stringify(payment)).toString('base64') : '';
  if (!text || text.length > PAYMENT_MAX) throw new ApiError('invalid_payment');
  return text;
}
const decoded = (value: string): unknown => JSON.parse(Buffer.from(value, 'base64').toString());
