/**
 * The catalogue of errors: every code that a customer can see, with its HTTP status and its default detail.
 * The service publishes it at /docs/errors, and docs/use/errors.md repeats it. Codes are added, never changed.
 */
import { GraphQLError } from 'graphql/error';

type Entry = readonly [
  status: 400 | 401 | 402 | 403 | 404 | 422 | 429 | 500 | 503,
  detail: string,
  retryable?: 'retryable',
];

/** How to register with a proof of work. */
export const HOW_TO_PROVE_WORK =
  'Find a number for which the SHA-256 of "challenge:number" begins with enough zero bits. The second part of the ' +
  'challenge says how many. Send the request again with proof_of_work "challenge:number". A solver is at /docs/authentication#proof-of-work.';

export const ERRORS = {
  malformed_json: [400, 'The body is not valid JSON.'],
  unsupported_media_type: [400, 'Send the body as JSON, with the header Content-Type: application/json.'],
  body_too_large: [400, 'The body is too large.'],
  invalid_query: [400, 'A query parameter is unknown or has an invalid value.'],
  invalid_cursor: [400, 'The cursor does not belong to this list with these filters. Read the first page again.'],
  invalid_header: [400, 'A request header has an invalid value.'],
  invalid_payment: [400, 'The x402 payment could not be decoded.'],
  invalid_request: [400, 'The OAuth request is incomplete or malformed.'],
  unsupported_grant_type: [400, 'The grant type is not supported. Use client_credentials or refresh_token.'],
  invalid_scope: [400, 'The scope is unknown or wider than allowed.'],
  invalid_grant: [400, 'The refresh token is invalid, expired or revoked.'],
  invalid_target: [400, 'The resource does not belong to this service.'],
  invalid_client_metadata: [400, 'The service does not accept this client metadata.'],

  missing_credential: [401, 'Send a credential as "Authorization: Bearer <credential>".'],
  invalid_credential: [401, 'The credential is not valid.'],
  expired_credential: [
    401,
    'The credential has expired. Refresh the access token by {RefreshTokens}, or log in by {Login}, or make a new API key.',
  ],
  revoked_credential: [401, 'The credential was revoked. Log in by {Login}, or use another API key.'],
  invalid_login: [401, 'The email or the password is wrong.'],
  invalid_totp: [401, 'The two-factor code is wrong, or was used before.'],
  login_token_expired: [401, 'The pending login has ended. Log in again by {Login}.'],
  refresh_token_reused: [
    401,
    'The refresh token was used before, so the service ended the whole session. Log in again.',
  ],
  invalid_client: [401, 'The client is unknown or its secret is wrong.'],

  insufficient_balance: [402, 'The balance does not cover the price. Top up by {CreateTopup}.', 'retryable'],
  payment_required: [
    402,
    'This request requires a payment. Sign the x402 challenge of the answer, and send the request again.',
    'retryable',
  ],
  payment_rejected: [402, 'The payment was refused. The service took no money.', 'retryable'],

  insufficient_scope: [403, 'The credential lacks the required scope.'],
  ip_not_allowed: [403, 'The IP allowlist of the credential does not include this address.'],
  spend_limit_exceeded: [403, "The request would exceed the credential's spending limit for this month."],
  step_up_required: [
    403,
    'The account has two-factor authentication, and this login is older than 15 minutes. Send totp_code, or log in again.',
  ],
  account_suspended: [403, 'The account is suspended.'],
  approval_needed: [403, 'Another operator must approve it.'],

  not_found: [404, 'The resource does not exist.'],
  endpoint_planned: [404, 'The endpoint is planned, but not available yet.'],
  browser_authorization_unavailable: [404, 'Authorization in a browser is not available. Use a Bearer credential.'],

  validation_failed: [422, 'The input is not valid.'],
  unknown_field: [422, 'The input has an unknown field.'],
  amount_too_low: [422, 'The amount is below the minimum.'],
  amount_too_high: [422, 'The amount is above the maximum.'],
  unknown_coin: [422, 'The coin is unknown. See {ListCoins}.'],
  coin_unavailable: [
    422,
    'The coin is not available at the moment. Try again later, or pay in another coin.',
    'retryable',
  ],
  proof_of_work_required: [422, `Too many accounts are being registered. ${HOW_TO_PROVE_WORK}`, 'retryable'],
  email_taken: [422, 'Another account has this email. Log in by {Login}, or use another one.'],
  weak_password: [422, 'The password is too easy to guess.'],
  wrong_password: [422, 'The password is wrong.'],
  totp_already_enabled: [422, 'Two-factor authentication is already on.'],
  totp_not_enabled: [422, 'Two-factor authentication is not on.'],
  totp_setup_missing: [422, 'Set up two-factor authentication first.'],
  api_key_limit_reached: [
    422,
    'The account has reached its limit of active API keys. Revoke one first by {RevokeApiKey}.',
  ],
  server_limit_reached: [422, 'The account has reached its limit of servers. Delete one first by {DeleteServer}.'],
  ssh_key_limit_reached: [422, 'The account has reached its limit of SSH keys. Delete one first by {DeleteSshKey}.'],
  webhook_limit_reached: [422, 'The account has reached its limit of webhooks. Delete one first by {DeleteWebhook}.'],
  topup_limit_reached: [
    422,
    'The account has reached its limit of open top-ups. Pay one first, or cancel one by {CancelTopup}.',
  ],
  agent_limit_reached: [
    422,
    'The account has reached its limit of agent entries. Publish one of them again with listed false: the next new entry takes its place.',
  ],
  session_limit_reached: [
    422,
    'The account has reached its limit of sessions, and an OAuth client may end only its own. End one first.',
  ],
  unknown_service_code: [422, 'The tier is unknown. See {GetCatalog}.'],
  unknown_region: [422, 'The region is unknown. See {ListBastions}.'],
  unknown_os: [422, 'The image is unknown. See {ListOsImages}.'],
  unknown_ssh_key: [422, 'The account has no SSH key with this id. See {ListSshKeys}.'],
  out_of_stock: [
    422,
    'The tier is out of stock in this region. Choose one of available_regions, or another tier.',
    'retryable',
  ],
  price_exceeds_max: [422, 'The price is above max_price_usd.'],
  invalid_public_key: [422, 'This is not a valid OpenSSH public key.'],
  private_key_rejected: [422, 'This looks like a private key. Send only the .pub file, and replace this key pair.'],
  key_too_weak: [422, 'The key is too weak.'],
  invalid_url: [422, 'The URL is not valid.'],
  url_not_allowed: [422, 'The URL does not lead to a public address.'],
  unknown_event: [422, 'The event type is unknown.'],
  topup_not_cancellable: [422, 'Only a pending top-up with nothing received can be cancelled.'],
  server_busy: [
    422,
    'The server is busy with another operation. Wait for its end by {GetServer} with wait_for "running".',
    'retryable',
  ],
  server_not_stopped: [422, 'Stop the server first: power_state "off" by {UpdateServer}.'],
  server_suspended: [422, 'The server is suspended.'],
  resize_not_possible: [422, 'A VPS can be resized only to a larger tier of VPS. See {ListVpsTiers}.'],
  delete_protected: [422, 'The server is protected from deletion. Turn delete_protection off first by {UpdateServer}.'],
  one_operation_per_request: [422, 'Send one operation per request.'],
  idempotency_key_reused: [
    422,
    'The idempotency key was used with a different request. Use a new key for a new request.',
  ],
  idempotency_in_progress: [422, 'The first request with this idempotency key is still running.', 'retryable'],
  payment_nonce_used: [422, 'The payment was used for another order.'],

  rate_limited: [429, 'Too many requests.', 'retryable'],
  login_throttled: [
    429,
    'Too many failed login attempts. Wait retry_after seconds, or send an API key or access token of the account with the login.',
    'retryable',
  ],

  internal_error: [500, 'Something failed on our side.', 'retryable'],
  unavailable: [
    503,
    'The service is not available at the moment. Send the request again, with the same Idempotency-Key if it had one.',
    'retryable',
  ],
} as const satisfies Record<string, Entry>;

export type ErrorCode = keyof typeof ERRORS;

/** One invalid field of the input. */
export interface FieldError {
  /** A dotted path of wire names. */
  field: string;
  code: string;
  message: string;
  limit?: number;
}

/** Members that only some errors have. Money is in micro-USD. */
export interface ErrorExtras {
  errors?: FieldError[];
  /** Whole seconds, at least 1; also sent as Retry-After. */
  retryAfter?: number;
  requiredScope?: string;
  /** The challenge to solve for a registration. */
  challenge?: string;
  availableRegions?: string[];
  requiredMicros?: bigint;
  balanceMicros?: bigint;
  headers?: Record<string, string>;
  /** How to pay by x402: members of the error, in the form of x402 version 1. */
  x402?: { error: string; accepts: readonly object[] };
}

/** An error that the caller may see. Facades mask all other errors as `internal_error`. */
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
        ...(extras.challenge && { challenge: extras.challenge }),
        http: { status, headers },
      },
    });
    this.code = code;
    this.extras = extras;
  }
}

/** `validation_failed` because of one field. @param code the reason, for programs */
export const refuse = (field: string, code: string, message: string): ApiError =>
  new ApiError('validation_failed', message, { errors: [{ field, code, message }] });

/** Returns the error that the caller may see, without the errors that wrap it, or undefined. */
export function apiErrorOf(error: unknown): ApiError | undefined {
  return causesOf(error).find((cause) => cause instanceof ApiError);
}

/** Returns an error and its causes, the outermost first: GraphQL and TypeORM wrap errors. */
export function causesOf(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  return [error, ...causesOf((error as GraphQLError).originalError ?? error.cause)];
}
