/**
 * The order in which transactions lock rows. Transactions that follow it may wait for each other, but never in a circle, so
 * PostgreSQL finds no deadlock. The tests record every lock and fail if one is out of order.
 *
 * - The row of `balance` is the lock of its account. A transaction locks it before other rows of the account.
 * - A transaction locks rows of one table in the order of their key, several rows by `select … order by … for update`.
 * - An INSERT is no lock, unless it has ON CONFLICT DO UPDATE: no other transaction waits for new rows.
 * - `for update skip locked` never waits, so it may come at any time.
 * - A worker writes its own task after the tasks that it starts.
 * - The outbox locks nothing: it inserts deliveries, and the process wakes the webhooks after the commit.
 */
export const LOCK_ORDER: readonly (readonly [table: string, keySql: string])[] = [
  ['own_database', 'is_only'],
  ['secret_key', "encode(id, 'hex')"],
  ['idempotency_key', 'key_digest'],
  ['recovery_challenge', 'id'],
  ['chain', 'network'],
  ['chain_block', 'height'],
  ['balance', 'account_id'],
  // Rows of an account.
  ['agent', 'id'],
  ['webhook', 'id'],
  ['webhook_delivery', 'id'],
  ['webhook_snapshot', 'event_id'],
  ['proposal', 'id'],
  ['payout', 'id'],
  ['payment', 'id'],
  ['x402_authorization', 'payment_id'],
  ['top_up', 'order_number'],
  ['server', 'order_number'],
  ['manual_job', 'id'],
  ['meter', 'order_number'],
  ['meter_sample', "concat_ws('/', order_number, step, at)"],
  ['brake', 'driver'],
  ['finding', "concat_ws('/', kind, order_number, generation)"],
  // Capacity that servers hold.
  ['stock', 'service_code'],
  ['place', "concat_ws('/', region_code, service_code, lpad(number::text, 9, '0'))"],
  ['host', 'name'],
  ['placement', 'order_number'],
  ['deployment', 'box'],
  ['address_pool', 'id'],
  // As text, 203.0.113.7 would come after 2001:db8::7.
  ['address', "encode(inet_send(address), 'hex')"],
  ['address_use', "encode(inet_send(address), 'hex')"],
  // Rows that the operator and the observers write.
  ['health', 'component'],
  ['reverse_dns_told', 'ip'],
  ['bonus_tier', 'min_micros'],
  ['catalog_item', 'code'],
  ['coin_rate', "concat_ws('/', coin, source)"],
  ['coin_switch', 'code'],
  ['incident', 'id'],
  ['peering', 'id'],
  ['deposit', 'source'],
  ['engine', 'name'],
  ['operator', 'id'],
  ['operator_session', 'id'],
  ['engine_image', 'name'],
  ['audit_unlinked', 'entry_id'],
  ['task', 'subject'],
];

/** Tables whose rows are locked only under the lock of their account, and therefore in any order. */
export const UNDER_ACCOUNT: ReadonlySet<string> = new Set([
  'abuse_case',
  'account',
  'api_key',
  'ended_client',
  'message',
  'oauth_client',
  'pending_login',
  'recovery_code',
  'session',
  'spending_month',
  'ssh_key',
  'totp',
  'usage_day',
]);
