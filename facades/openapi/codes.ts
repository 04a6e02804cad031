/** The errors that an endpoint can answer: those of its fields, of its form and of its credential. */
import { ERRORS, type ErrorCode } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';
import { STYLES } from '../compile/styles.ts';
import { takesKey } from '../http/idempotency.ts';

/** The listener checks each credential, also one that an operation does not need. */
const EVERYWHERE: readonly ErrorCode[] = [
  'invalid_query',
  'invalid_credential',
  'expired_credential',
  'revoked_credential',
  'ip_not_allowed',
  'rate_limited',
  'internal_error',
  'unavailable',
];
const OF_BODIES: readonly ErrorCode[] = [
  'malformed_json',
  'unsupported_media_type',
  'body_too_large',
  'validation_failed',
  'unknown_field',
];
const OF_KEYS: readonly ErrorCode[] = ['invalid_header', 'idempotency_key_reused', 'idempotency_in_progress'];
const OF_PAYMENTS: readonly ErrorCode[] = [
  'invalid_header',
  'invalid_payment',
  'payment_required',
  'payment_rejected',
  'payment_nonce_used',
];
const OF_SECOND_FACTOR: readonly ErrorCode[] = ['step_up_required', 'invalid_totp', 'login_throttled'];

/** The errors of an endpoint, in the order of the catalogue. */
export function codesOf(operation: Operation): ErrorCode[] {
  const { http, scopes, activeOnly, creates, pays, parameters, errors } = operation;
  const { refusal } = STYLES[http!.style];
  const form: readonly [boolean, readonly ErrorCode[]][] = [
    [http!.method !== 'GET', OF_BODIES],
    [refusal !== undefined, [refusal!]],
    [scopes.length > 0, ['missing_credential', 'insufficient_scope']],
    [activeOnly, ['account_suspended']],
    [creates, OF_SECOND_FACTOR],
    [parameters.some(({ name }) => name === 'cursor'), ['invalid_cursor']],
    [parameters.some((one) => one.in === 'path'), ['not_found']],
    [http!.status === 'PLANNED', ['endpoint_planned']],
    [takesKey(operation), OF_KEYS],
    [pays, OF_PAYMENTS],
  ];
  const all = new Set([...EVERYWHERE, ...errors, ...form.flatMap(([applies, codes]) => (applies ? codes : []))]);
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => all.has(code));
}
