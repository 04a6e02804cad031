/** Webhooks: the URLs to which an account has its events delivered. */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import { EVENT_TYPES } from '../history/event.ts';
import type { Lifecycle } from '../history/lifecycle.ts';

export const WEBHOOK_STATUSES = ['ENABLED', 'DISABLED'] as const;

export const Webhook = entity('webhook', {
  id: column.key(),
  accountId: column.text(),
  /** As the URL parser prints it. */
  url: column.text(),
  /** Patterns of events: `*`, `server.*` or exact names. */
  eventFilter: column.textArray(),
  description: nullable(column.text()),
  /** Sealed: `whsec_…`. */
  secret: column.bytes(),
  /** Sealed: the secret before the last rotation. It also signs until the time after it. */
  previousSecret: nullable(column.bytes()),
  previousSecretUntil: nullable(column.timestamp()),
  status: defaulting(column.oneOf(...WEBHOOK_STATUSES), "'ENABLED'"),
  /** `endpoint_gone`, `retries_exhausted`, `expired`, `creator_revoked` or `secret_revoked`. */
  disabledReason: nullable(column.text()),
  lastSuccessAt: nullable(column.timestamp()),
  createdAt: column.now(),
  /** The expiry of the credential that created it. */
  expiresAt: nullable(column.timestamp()),
  /** The credential with limits, or the OAuth client, that created it. Its end disables the webhook. */
  limitedBy: nullable(column.text()),
});
export type Webhook = RowOf<typeof Webhook>;

export const WEBHOOK_SECRET = sealedColumn(Webhook, 'secret', 'id');
export const PREVIOUS_WEBHOOK_SECRET = sealedColumn(Webhook, 'previousSecret', 'id');

/** A test that succeeds enables a disabled webhook, and a new secret one that a revocation disabled. */
export const WEBHOOK_LIFECYCLE: Lifecycle<Webhook, Webhook['status']> = {
  table: Webhook,
  key: 'id',
  state: 'status',
  transitions: { ENABLED: ['DISABLED'], DISABLED: ['ENABLED'] },
};

/** Reads the webhook $1, and the seconds until it expires; null: it never does. Its previous secret is null once it signs no more. */
export const FIND_WEBHOOK = statement({ ...Webhook.columns, secondsLeft: nullable(column.real()) })`
  select ${columnsOf(Webhook, 'webhook', ['previousSecret', 'previousSecretUntil'])},
    case when previous_secret_until > now() then previous_secret end as previous_secret, previous_secret_until,
    extract(epoch from expires_at - now())::float8 as seconds_left
  from webhook where id = $1`;

/** The accounts with an enabled webhook. */
export const LIST_LISTENERS = statement({ accountId: column.text() })`
  select distinct account_id from webhook where status = 'ENABLED' order by account_id`;

/** The reasons of revocations. Only a new secret enables the webhook again. */
export const SECRET_REVOKED = 'secret_revoked';
export const CREATOR_REVOKED = 'creator_revoked';
/** Whether a revocation has disabled the webhook. */
export const isRevoked = ({ disabledReason }: Pick<Webhook, 'disabledReason'>): boolean =>
  disabledReason === SECRET_REVOKED || disabledReason === CREATOR_REVOKED;
/** Locks the webhooks of the account $1. */
export const LOCK_WEBHOOKS = statement({ id: column.key(), disabledReason: nullable(column.text()) })`
  select id, disabled_reason from webhook where account_id = $1 order by id for update`;

const BOTH_SIGN_HOURS = 24;
/** Replaces the secret of the webhook $1 by $2. The earlier one, $3, signs too for a day; null: it was revoked. */
export const ROTATE_SECRET = statement(Webhook.columns)`
  update webhook set secret = $2, previous_secret = $3,
    previous_secret_until = case when $3::bytea is not null then now() + make_interval(hours => ${BOTH_SIGN_HOURS}) end
  where id = $1 returning ${columnsOf(Webhook)}`;
/** Erases previous secrets that sign no more. */
export const ERASE_PREVIOUS_SECRETS = statement({})`
  update webhook set previous_secret = null, previous_secret_until = null
  where id in (select id from webhook where previous_secret_until <= now() for update skip locked)`;

/** Writes the time of a success of the webhook $1. */
export const MARK_SUCCESS = statement({})`update webhook set last_success_at = clock_timestamp() where id = $1`;

export const WEBHOOK_PROCESS = 'webhook';
/** The step of the process that sends due deliveries. */
export const DELIVER_STEP = 'deliver';

/** The patterns that a filter may contain: `*`, groups such as `server.*`, and the names of events. */
export const EVENT_PATTERNS: readonly string[] = [
  '*',
  ...new Set(EVENT_TYPES.map((type) => `${type.split('.', 1)[0]}.*`)),
  ...EVENT_TYPES,
];
