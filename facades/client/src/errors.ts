/** A refused field of the input. */
export interface FieldFault {
  field: string;
  code: string;
  message: string;
}

/** The service refused a call, or did not answer. Decide by `code`. */
export class FreeholdError extends Error {
  override readonly name = 'FreeholdError';
  /** As in the catalogue of errors at /docs/errors. Without an answer: `no_answer`. */
  readonly code: string;
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  /** The refused fields, if the input has some. */
  readonly errors: readonly FieldFault[];
  /** The id of the call, for the operator. */
  readonly requestId: string | undefined;
  /** Seconds until the next try can succeed. */
  readonly retryAfterSeconds: number | undefined;
  /** The key of the call. Send it again to learn what became of a call without an answer. */
  readonly idempotencyKey: string | undefined;
  /** The whole answer, with members such as `required_usd`. */
  readonly body: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    body: Record<string, unknown>,
    more: { idempotencyKey?: string | undefined; cause?: unknown } = {},
  ) {
    super(String(body.detail ?? body.title ?? `The service answered ${status}.`), { cause: more.cause });
    this.status = status;
    this.code = String(body.code ?? 'unknown');
    this.errors = Array.isArray(body.errors) ? (body.errors as FieldFault[]) : [];
    this.requestId = typeof body.request_id === 'string' ? body.request_id : undefined;
    this.retryAfterSeconds = typeof body.retry_after === 'number' ? body.retry_after : undefined;
    this.idempotencyKey = more.idempotencyKey;
    this.body = body;
  }
}
