/**
 * The catalogue of errors: every code that a customer can see, with its HTTP status and its sentence. It is
 * published at /docs/errors and in docs/use/errors.md; codes are added, never changed.
 */
import { GraphQLError } from 'graphql';

type Entry = readonly [
  status: 400 | 401 | 402 | 403 | 404 | 422 | 429 | 500 | 503,
  detail: string,
  retryable?: 'retryable',
];

export const ERRORS = {
  malformed_json: [400, 'The body is not valid JSON.'],
  unsupported_media_type: [400, 'Send the body as application/json.'],
  body_too_large: [400, 'The body is too large.'],
  invalid_query: [400, 'A query parameter is unknown or has a wrong value.'],
  invalid_cursor: [400, 'The cursor does not belong to this list and these filters.'],
  invalid_header: [400, 'A request header has a wrong value.'],
  invalid_payment: [400, 'The x402 payment could not be decoded.'],
  invalid_request: [400, 'The OAuth request is incomplete or malformed.'],
  unsupported_grant_type: [400, 'The grant type is not supported.'],
  invalid_scope: [400, 'The scope is unknown or wider than allowed.'],
  invalid_grant: [400, 'The grant is invalid, expired or revoked.'],
  invalid_target: [400, 'The resource is not one of this service.'],
  invalid_client_metadata: [400, 'The client metadata cannot be accepted.'],

  missing_credential: [401, 'Send a credential as "Authorization: Bearer <credential>".'],
  invalid_credential: [401, 'The credential is not valid.'],
  expired_credential: [401, 'The credential has expired.'],
  revoked_credential: [401, 'The credential was revoked.'],
  invalid_login: [401, 'The email or the password is wrong.'],
  invalid_totp: [401, 'The second factor is wrong.'],
  login_token_expired: [401, 'The pending login is over. Log in again.'],
  refresh_token_reused: [401, 'The refresh token was used before, so its whole family was revoked. Log in again.'],
  invalid_client: [401, 'The client is unknown or its secret is wrong.'],

  insufficient_balance: [402, 'The balance does not cover the price.', 'retryable'],
  payment_required: [402, 'Pay to go on.', 'retryable'],
  payment_rejected: [402, 'The payment was refused, and nothing was taken.', 'retryable'],

  insufficient_scope: [403, 'The credential lacks the required scope.'],
  ip_not_allowed: [403, 'The API key may not be used from this address.'],
  spend_limit_exceeded: [403, "The API key's spending limit for this month does not allow it."],
  account_suspended: [403, 'The account is suspended.'],

  not_found: [404, 'There is nothing here.'],
  endpoint_planned: [404, 'The endpoint is planned and not available yet.'],
  browser_authorization_unavailable: [404, 'Authorization in a browser is not available. Use a Bearer credential.'],

  validation_failed: [422, 'The input is not valid.'],
  unknown_field: [422, 'The input has an unknown field.'],
  amount_too_low: [422, 'The amount is too low.'],
  amount_too_high: [422, 'The amount is too high.'],
  unknown_coin: [422, 'There is no such coin. See /v1/billing/coins.'],
  coin_unavailable: [422, 'The coin is not available at the moment.', 'retryable'],
  email_taken: [422, 'The email is taken.'],
  weak_password: [422, 'The password is too easy to guess.'],
  wrong_password: [422, 'The password is wrong.'],
  totp_already_enabled: [422, 'Two-factor authentication is already on.'],
  totp_not_enabled: [422, 'Two-factor authentication is not on.'],
  totp_setup_missing: [422, 'Set up two-factor authentication first.'],
  api_key_limit_reached: [422, 'The account has as many active API keys as it may have. Revoke one.'],
  server_limit_reached: [422, 'The account has as many servers as it may have.'],
  ssh_key_limit_reached: [422, 'The account has as many SSH keys as it may have.'],
  webhook_limit_reached: [422, 'The account has as many webhooks as it may have.'],
  topup_limit_reached: [422, 'The account has as many open top-ups as it may have.'],
  agent_limit_reached: [422, 'The account has as many agent entries as it may have.'],
  session_limit_reached: [422, 'The account has as many sessions as it may have.'],
  unknown_service_code: [422, 'There is no such tier. See /v1/catalog.'],
  unknown_region: [422, 'There is no such bastion. See /v1/catalog/bastions.'],
  unknown_os: [422, 'There is no such image. See /v1/catalog/images.'],
  unknown_ssh_key: [422, 'The account has no such SSH key.'],
  out_of_stock: [422, 'The tier is out of stock there.', 'retryable'],
  price_exceeds_max: [422, 'The price is above max_price_usd.'],
  invalid_public_key: [422, 'This is not an OpenSSH public key.'],
  private_key_rejected: [422, 'This looks like a private key. Upload only the .pub file, and replace that key pair.'],
  key_too_weak: [422, 'The key is too weak.'],
  invalid_url: [422, 'The URL is not valid.'],
  url_not_allowed: [422, 'The URL does not lead to a public address.'],
  unknown_event: [422, 'There is no such event.'],
  topup_not_cancellable: [422, 'Only a pending top-up with nothing received can be cancelled.'],
  server_busy: [422, 'The server is busy with another operation.', 'retryable'],
  server_not_stopped: [422, 'Stop the server first.'],
  server_suspended: [422, 'The server is suspended.'],
  resize_not_possible: [422, 'The server cannot be resized to that tier.'],
  delete_protected: [422, 'The server is protected from deletion.'],
  one_operation_per_request: [422, 'Ask for one operation at a time.'],
  idempotency_key_reused: [422, 'The idempotency key was used with another request.'],
  idempotency_in_progress: [422, 'The first request with this idempotency key is still running.', 'retryable'],
  payment_nonce_used: [422, 'The payment was used for another order.'],

  rate_limited: [429, 'Too many requests.', 'retryable'],
  login_throttled: [429, 'Too many failed attempts.', 'retryable'],

  internal_error: [500, 'Something broke on our side.', 'retryable'],
  unavailable: [
    503,
    'The service is not available at the moment. Send the request again, with the same Idempotency-Key if it had one.',
    'retryable',
  ],
} as const satisfies Record<string, Entry>;

export type ErrorCode = keyof typeof ERRORS;

/** One wrong field; `field` is a dotted path of wire names. */
export interface FieldError {
  field: string;
  code: string;
  message: string;
  limit?: number;
}

/** Members that some errors have beside the common ones. Money is in micro-USD. */
export interface ErrorExtras {
  errors?: FieldError[];
  /** Whole seconds, at least 1; also sent as Retry-After. */
  retryAfter?: number;
  requiredScope?: string;
  availableRegions?: string[];
  requiredMicros?: bigint;
  balanceMicros?: bigint;
  headers?: Record<string, string>;
  /** How to pay by x402: members of the error as its version 1 wants them. */
  x402?: { error: string; accepts: readonly object[] };
}

/** An error that the caller may see. Everything else is masked as `internal_error`. */
export class ApiError extends GraphQLError {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;
  constructor(code: ErrorCode, detail: string = ERRORS[code][1], extras: ErrorExtras = {}) {
    const [status, , retryable] = ERRORS[code] as Entry;
    const headers = { ...(extras.retryAfter && { 'retry-after': String(extras.retryAfter) }), ...extras.headers };
    super(detail, {
      extensions: {
        code,
        status,
        detail,
        retryable: retryable !== undefined,
        ...(extras.errors && { errors: extras.errors }),
        ...(extras.retryAfter && { retryAfter: extras.retryAfter }),
        http: { status, headers },
      },
    });
    this.code = code;
    this.extras = extras;
  }
}

/** The error that the caller may see behind whatever GraphQL wrapped it in, or undefined. */
export function apiErrorOf(error: unknown): ApiError | undefined {
  return causesOf(error).find((cause) => cause instanceof ApiError);
}

/** An error and the errors behind it, the outermost first: GraphQL and TypeORM wrap what was thrown. */
export function causesOf(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  return [error, ...causesOf((error as GraphQLError).originalError ?? error.cause)];
}
