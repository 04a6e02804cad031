/**
 * Payment by x402 within MCP, as x402 has it (its transport for MCP): a call that has to be paid for is answered with what
 * is asked for, beside our error; called again with a signed payment in `_meta`, the answer has the receipt in its own.
 */
import type { CallToolResult, ServerContext } from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import { isRecord } from '../compile/inputs.ts';
import type { Operation } from '../compile/operation.ts';
import type { Values } from '../compile/run.ts';

const PAYMENT = 'x402/payment';
const RECEIPT = 'x402/payment-response';
/** Of a payment, as of the header that would carry it. */
const PAYMENT_MAX = 16_384;

/** How one call is paid for. */
export interface ToolPayment {
  /** What the call says of paying, as variables of the operation. @throws ApiError invalid_payment */
  values(given: Values, request: ServerContext): Values;
  /** Takes the receipt out of the headers that REST would send. */
  setHeader(name: string, value: string): void;
  /** The answer with its receipt, if there is one. */
  receipted(result: CallToolResult): CallToolResult;
}

/** What pays for calls of an operation; undefined: nothing is to be paid for by x402. */
export function paymentsOf({ parameters, tool }: Operation): (() => ToolPayment) | undefined {
  const variableOf = (name: string) => parameters.find(({ header }) => header === name)?.variable;
  const [signature, mode] = [variableOf('PAYMENT-SIGNATURE'), variableOf('X-Payment-Mode')];
  if (!signature) return undefined;
  const { paidWithout } = tool!;
  return () => {
    let receipt: unknown;
    return {
      values: (given, { mcpReq }) => {
        const payment = mcpReq._meta?.[PAYMENT];
        if (payment !== undefined) return { [signature]: encoded(payment) };
        return mode && paidWithout && (given[paidWithout] ?? null) === null ? { [mode]: 'X402' } : {};
      },
      setHeader: (name, value) => {
        if (name === 'payment-response') receipt = decoded(value);
      },
      receipted: (result) => (receipt ? { ...result, _meta: { [RECEIPT]: receipt } } : result),
    };
  };
}

/** The error, with what version 2 of x402 asks for where REST has that in a header. */
export function demanded(body: Readonly<Values>, headers: Readonly<Record<string, string>>): Readonly<Values> {
  const required = headers['payment-required'];
  return required ? { ...body, ...(decoded(required) as Values) } : body;
}

function encoded(payment: unknown): string {
  const text = isRecord(payment) ? Buffer.from(JSON.stringify(payment)).toString('base64') : '';
  if (!text || text.length > PAYMENT_MAX) throw new ApiError('invalid_payment');
  return text;
}
const decoded = (value: string): unknown => JSON.parse(Buffer.from(value, 'base64').toString());
