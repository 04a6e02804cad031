/** The JSON Schema of the flat error object: RFC 9457 and more members. */
import { ERRORS } from '../../schema/index.ts';
import type { JsonSchema } from '../compile/json-schema.ts';

const text = (description: string, maxLength: number): JsonSchema => ({ type: 'string', maxLength, description });
const name = (description: string): JsonSchema => ({ ...text(description, 64), pattern: '^[A-Za-z0-9_-]+$' });

function int32(description: string, minimum: number, maximum: number): JsonSchema {
  return { type: 'integer', format: 'int32', minimum, maximum, description };
}

const FIELD_ERROR: JsonSchema = {
  type: 'object',
  properties: {
    field: text('The path of the field, with dots.', 200),
    code: name('The kind of error.'),
    message: text('A sentence for people.', 2000),
    limit: { type: 'number', description: 'The limit that the value violates.' },
  },
  required: ['field', 'code', 'message'],
};

/** PaymentRequirements of x402, version 1. */
const X402_REQUIREMENT: JsonSchema = {
  type: 'object',
  properties: {
    scheme: { const: 'exact', description: 'The payment of an exact amount.' },
    network: name('The chain of the token, such as base-sepolia.'),
    maxAmountRequired: { ...text('The price, in base units of the token.', 30), pattern: '^[0-9]+$' },
    asset: name('The address of the token contract.'),
    payTo: name('The address of the recipient.'),
    resource: { ...text('The URL of the paid endpoint.', 2048), format: 'uri' },
    description: text('A description of the paid request.', 255),
    mimeType: text('The media type of the answer.', 64),
    maxTimeoutSeconds: int32('The time for the payment, in seconds.', 1, 3600),
    extra: {
      type: 'object',
      description: 'The EIP-712 domain of the token.',
      properties: { name: text('The name of the domain.', 64), version: text('The version of the domain.', 16) },
    },
  },
  required: ['scheme', 'network', 'maxAmountRequired', 'asset', 'payTo', 'resource', 'maxTimeoutSeconds'],
};

export const ERROR: JsonSchema = {
  type: 'object',
  description: 'An error: RFC 9457 with `code`, by which a program can decide.',
  properties: {
    type: { ...text('The URL of an explanation of the code.', 2048), format: 'uri' },
    title: text('The text of the HTTP status.', 64),
    status: int32('The HTTP status.', 400, 599),
    code: {
      ...name('The code of the error. New versions add codes, and never change one.'),
      examples: Object.keys(ERRORS),
    },
    detail: text('A sentence for people.', 2000),
    request_id: name('The id of the request. Name it when you ask for help.'),
    retryable: { type: 'boolean', description: 'Whether the same request may succeed later.' },
    errors: { type: 'array', maxItems: 50, items: FIELD_ERROR, description: 'The errors of the input, by field.' },
    retry_after: int32('Seconds to wait before the next request.', 1, 2 ** 31 - 1),
    challenge: text('The challenge of a proof of work: see proof_of_work of the request.', 200),
    required_scope: name('The scope that the credential lacks.'),
    available_regions: {
      type: 'array',
      maxItems: 1000,
      items: name('The code of a bastion.'),
      description: 'The bastions that have the tier in stock.',
    },
    required_usd: { type: 'number', description: 'The balance that the request needs, in US dollars.' },
    balance_usd: { type: 'number', description: 'The balance of the account, in US dollars.' },
    x402Version: { const: 1, description: 'The version of the x402 challenge in the body.' },
    accepts: {
      type: 'array',
      maxItems: 10,
      items: X402_REQUIREMENT,
      description: 'The payments that the x402 challenge, version 1, accepts.',
    },
    error: name('On /v1/oauth: the error code of OAuth. With an x402 challenge: its reason.'),
    error_description: text('On /v1/oauth: the detail, for OAuth clients.', 2000),
    availability: { const: 'PLANNED', description: 'Present if the endpoint is not available yet.' },
  },
  required: ['type', 'title', 'status', 'code', 'detail', 'request_id', 'retryable'],
};
