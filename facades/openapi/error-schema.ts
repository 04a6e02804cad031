/** The flat error object (RFC 9457 and more), as a JSON Schema. */
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
    code: name('What is wrong with it.'),
    message: text('A sentence for humans.', 2000),
    limit: { type: 'number', description: 'The limit that it missed.' },
  },
  required: ['field', 'code', 'message'],
};

/** PaymentRequirements of x402, version 1. */
const X402_REQUIREMENT: JsonSchema = {
  type: 'object',
  properties: {
    scheme: { const: 'exact' },
    network: name('Such as base-sepolia.'),
    maxAmountRequired: { ...text('In units of the asset.', 30), pattern: '^[0-9]+$' },
    asset: name('The contract of the token.'),
    payTo: name('Who is paid.'),
    resource: { ...text('What is paid for.', 2048), format: 'uri' },
    description: text('What is paid for, in words.', 255),
    mimeType: text('What the answer will be.', 64),
    maxTimeoutSeconds: int32('How long the payment may take.', 1, 3600),
    extra: {
      type: 'object',
      description: 'The EIP-712 domain of the token.',
      properties: { name: text('Its name.', 64), version: text('Its version.', 16) },
    },
  },
  required: ['scheme', 'network', 'maxAmountRequired', 'asset', 'payTo', 'resource', 'maxTimeoutSeconds'],
};

export const ERROR: JsonSchema = {
  type: 'object',
  description: 'Every answer that is no success (RFC 9457, with `code` to decide by).',
  properties: {
    type: { ...text('Where the code is explained.', 2048), format: 'uri' },
    title: text('The text of the status.', 64),
    status: int32('The HTTP status.', 400, 599),
    code: {
      ...name('Decide by this; codes are added, never changed.'),
      examples: Object.keys(ERRORS),
    },
    detail: text('A sentence for humans.', 2000),
    request_id: name('Tell us this when you ask for help.'),
    retryable: { type: 'boolean', description: 'Whether the same request may succeed later.' },
    errors: { type: 'array', maxItems: 50, items: FIELD_ERROR, description: 'The fields that are wrong.' },
    retry_after: int32('Seconds to wait.', 1, 2 ** 31 - 1),
    required_scope: name('The scope that the credential lacks.'),
    available_regions: {
      type: 'array',
      maxItems: 1000,
      items: name('The code of a bastion.'),
      description: 'Where there is stock.',
    },
    required_usd: { type: 'number', description: 'What it costs.' },
    balance_usd: { type: 'number', description: 'What there is.' },
    x402Version: { const: 1, description: 'With a challenge to pay by x402: its version in the body.' },
    accepts: {
      type: 'array',
      maxItems: 10,
      items: X402_REQUIREMENT,
      description: 'The payments that x402, version 1, would take.',
    },
    error: name('On /v1/oauth: the error as OAuth names it. With an x402 challenge: why there is one.'),
    error_description: text('On /v1/oauth: the detail, for OAuth clients.', 2000),
    availability: { const: 'PLANNED', description: 'If the endpoint is announced and not available yet.' },
  },
  required: ['type', 'title', 'status', 'code', 'detail', 'request_id', 'retryable'],
};
