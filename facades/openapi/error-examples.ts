/** The examples of errors: one of each code that an operation can answer. */
import { STATUS_CODES } from 'node:http';
import { ERRORS, type ErrorCode } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';
import type { Terms } from '../compile/terms.ts';
import { codesOf } from './codes.ts';

type Json = Record<string, unknown>;

/** The examples by their codes. */
export function errorExamples(operations: readonly Operation[], publicUrl: string, terms: Terms): Json {
  const used = new Set(operations.flatMap((operation) => (operation.http ? codesOf(operation) : [])));
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => used.has(code));
  return Object.fromEntries(codes.map((code) => [code, { value: errorExample(code, publicUrl, terms) }]));
}

/** The additional members of some errors. */
const EXTRAS: Readonly<Partial<Record<ErrorCode, Json>>> = {
  endpoint_planned: { availability: 'PLANNED' },
  insufficient_scope: { required_scope: 'servers' },
  insufficient_balance: { required_usd: 6, balance_usd: 1.5 },
  out_of_stock: { available_regions: ['ams', 'fra'] },
  proof_of_work_required: { challenge: '1:20:1795348800:Zm9yIGV4YW1wbGU:7c6PpQ0bJ8mYt1r0bq3ZyqF2xk5v9wLhN4sTgUoEdIk' },
  rate_limited: { retry_after: 12 },
  login_throttled: { retry_after: 60 },
  unavailable: { retry_after: 1 },
  unknown_field: {
    detail: 'There is no field hostnam. Did you mean hostname?',
    errors: [{ field: 'hostnam', code: 'unknown_field', message: 'There is no field hostnam. Did you mean hostname?' }],
  },
  validation_failed: {
    detail: 'limit must be at most 200.',
    errors: [{ field: 'limit', code: 'too_high', message: 'limit must be at most 200.', limit: 200 }],
  },
};

function errorExample(code: ErrorCode, publicUrl: string, terms: Terms): Json {
  const [status, detail, retryable] = ERRORS[code] as readonly [number, string, string?];
  return {
    type: `${publicUrl}/docs/errors#${code}`,
    title: STATUS_CODES[status],
    status,
    code,
    detail: terms(detail),
    request_id: 'req_01m7z3eaymx8r1n4b6tq0c5d2h',
    retryable: retryable !== undefined,
    ...EXTRAS[code],
  };
}
