/** The events that customers can hear. The list of the API, the guide and the OpenAPI document show this table. */
import type { EventType } from '../history/event.ts';

/** An event, as a customer learns of it. */
export interface ToldEvent {
  /** The change, as a sentence to the customer. */
  description: string;
  /** The members of the resource that differ from its example. */
  object?: Readonly<Record<string, unknown>>;
  /** The other members of `data` in a message. */
  data?: Readonly<Record<string, unknown>>;
}

const ID = '01m7z3eaymx8r1n4b6tq0c5d2h';
const ACCOUNT = { object: { id: `acct_${ID}` } };
const SESSION = { object: { id: `tok_${ID}` } };
const CLIENT = { object: { id: `cl_${ID}` } };
const CASE_ID = { object: { id: `case_${ID}` } };
const UNPAID = { received_crypto: '0', confirmations: 0, tx_ids: [], credited_usd: 0, confirmed_at: null };
const SECURITY = { count: 3 };
const CASE = 'Somebody complained about one of your servers';

export const TOLD_EVENTS: Readonly<Partial<Record<EventType, ToldEvent>>> = {
  'server.created': { description: 'You ordered a server.', object: { status: 'pending', ipv4: null, ipv6: null } },
  'server.provisioning': {
    description: 'A worker began to make the machine.',
    object: { status: 'provisioning' },
    data: { previous_status: 'pending' },
  },
  'server.running': {
    description: 'The server runs: for the first time, or after a start, reboot, reset or suspension.',
    object: { status: 'running' },
    data: { previous_status: 'provisioning' },
  },
  'server.stopped': {
    description: 'The server stopped, or its suspension ended while it was off.',
    object: { status: 'stopped' },
    data: { previous_status: 'stopping' },
  },
  'server.failed': {
    description: 'The order failed, and the money is back in the balance.',
    object: { status: 'failed', failure: { code: 'no_capacity', message: 'There was no free place.' } },
    data: { previous_status: 'provisioning' },
  },
  'server.updated': {
    description:
      'A field changed, or a rebuild or resize ended (`data.operation`). The operator announced another price (`data.next_price_month_usd`, from `data.next_price_from` on; null: the price stays). Operation `move`: the operator moved the machine, which was off meanwhile.',
    data: { operation: 'rebuild' },
  },
  'server.action_failed': { description: 'An operation failed, and the server is as it was before.' },
  'server.renewed': { description: 'A month was paid.' },
  'server.suspended': {
    description: 'A month could not be paid, or was not to be.',
    object: { status: 'suspended' },
    data: { previous_status: 'running' },
  },
  'server.traffic_warned': {
    description: 'The server used 80 or 100 % (`data.percent`) of its traffic of the month. Once for each.',
    data: { percent: 80 },
  },
  'server.traffic_charged': {
    description: 'The balance paid for more traffic (`data.amount_usd`).',
    data: { amountUsd: 1.5 },
  },
  'server.deleted': {
    description: 'The machine is gone.',
    object: { status: 'deleted' },
    data: { previous_status: 'deleting' },
  },
  'topup.created': { description: 'You opened a top-up.', object: { status: 'pending', ...UNPAID } },
  'topup.confirming': {
    description: 'The service saw a payment.',
    object: { status: 'confirming', confirmations: 1, credited_usd: 0, confirmed_at: null },
    data: { previous_status: 'pending' },
  },
  'topup.confirmed': {
    description: 'The balance has the money.',
    object: { status: 'confirmed' },
    data: { previous_status: 'confirming' },
  },
  'topup.expired': {
    description: 'No payment came in time.',
    object: { status: 'expired', ...UNPAID },
    data: { previous_status: 'pending' },
  },
  'topup.cancelled': {
    description: 'You cancelled a top-up.',
    object: { status: 'cancelled', ...UNPAID },
    data: { previous_status: 'pending' },
  },
  'balance.low': { ...ACCOUNT, description: 'The balance does not cover the next days. At most once a day.' },
  'balance.adjusted': {
    ...ACCOUNT,
    description: 'The operator changed the balance, for a reason that the usage shows.',
  },
  'api_key.created': { description: 'You created an API key.' },
  'api_key.revoked': { description: 'An API key was revoked.', object: { status: 'revoked' } },
  'api_key.expired': { description: 'An API key expired.', object: { status: 'expired' } },
  'ssh_key.created': { description: 'You added an SSH key.' },
  'ssh_key.deleted': { description: 'You deleted an SSH key.' },
  'oauth_client.created': { ...CLIENT, description: 'An OAuth client registered.' },
  'oauth_client.removed': {
    ...CLIENT,
    description: 'You deleted an OAuth client, or the service removed an unused one.',
  },
  'oauth_client.secret_rotated': {
    ...CLIENT,
    description: 'An OAuth client got a new secret. `data.reason`: from the operator.',
  },
  'session.created': { ...SESSION, description: 'A login began.' },
  'session.revoked': { ...SESSION, description: 'A login ended.' },
  'session.reuse_detected': {
    ...SESSION,
    description: 'A refresh token came twice, so all its sessions ended. Change the password.',
  },
  'session.login_failed': {
    ...ACCOUNT,
    description: 'A login had a wrong password or code. Or a login with the right password got no code.',
    data: SECURITY,
  },
  'session.code_failed': {
    ...ACCOUNT,
    description: 'A change of the login had a wrong password or code.',
    data: SECURITY,
  },
  'session.login_throttled': {
    ...ACCOUNT,
    description: 'Too many logins failed: the service refused one unseen.',
    data: SECURITY,
  },
  'session.refused': { ...SESSION, description: 'A caller used an ended session.', data: SECURITY },
  'session.network_refused': {
    ...SESSION,
    description: 'A caller used or introspected a session from a network that it does not allow.',
    data: SECURITY,
  },
  'api_key.refused': { description: 'A caller used an ended API key.', data: SECURITY },
  'api_key.network_refused': {
    description: 'A caller used an API key from a network that it does not allow.',
    data: SECURITY,
  },
  'oauth_client.refused': {
    ...CLIENT,
    description: 'A caller used a wrong client secret, or an expired client.',
    data: SECURITY,
  },
  'oauth_client.network_refused': {
    ...CLIENT,
    description: 'A caller used a client from a network that it does not allow.',
    data: SECURITY,
  },
  'account.password_changed': { ...ACCOUNT, description: 'The password changed.' },
  'account.totp_enabled': { ...ACCOUNT, description: 'The second factor was turned on.' },
  'account.totp_disabled': { ...ACCOUNT, description: 'The second factor was turned off.' },
  'account.recovery_codes_renewed': { ...ACCOUNT, description: 'The account has new recovery codes.' },
  'account.password_reset': {
    ...ACCOUNT,
    description: 'The operator gave the account a new password. All sessions ended.',
  },
  'account.totp_reset': { ...ACCOUNT, description: 'The operator turned the second factor off. All sessions ended.' },
  'account.updated': {
    ...ACCOUNT,
    description: 'The email, the PGP key, the recovery codes or the days of balance.low changed (`data.changed`).',
    data: { changed: ['email'] },
  },
  'account.recovered': {
    ...ACCOUNT,
    description: 'Somebody set a new password with a recovery code or the PGP key (`data.by`). All sessions ended.',
    data: { by: 'code', sessionsRevoked: 2 },
  },
  'account.restored': {
    ...ACCOUNT,
    description:
      'The operator restored the service from a backup, so it lacks changes after `data.since`. Compare your servers and your balance with your own notes.',
    data: { since: '2026-11-29T21:00:00.000Z' },
  },
  'account.suspended': { ...ACCOUNT, description: 'The operator suspended the account.' },
  'account.resumed': { ...ACCOUNT, description: 'The operator ended the suspension of the account.' },
  'account.limits_changed': { ...ACCOUNT, description: 'The operator changed the limits of the account.' },
  'account.credentials_revoked': {
    ...ACCOUNT,
    description: 'The operator ended all credentials of the account, for `data.reason`. Log in again.',
    data: { reason: 'A thief used them.' },
  },
  'message.created': {
    description: 'The operator wrote you a message, or you wrote one.',
  },
  'case.opened': { ...CASE_ID, description: `${CASE}. A message tells the complaint, the deadline and each measure.` },
  'case.measure_taken': { ...CASE_ID, description: 'The operator took a measure against a server with a complaint.' },
  'case.closed': { ...CASE_ID, description: 'A complaint about one of your servers ended with `data.result`.' },
  'webhook.created': { description: 'You created a webhook.' },
  'webhook.deleted': { description: 'You deleted a webhook.' },
  'webhook.secret_rotated': { description: 'A webhook got a new secret.' },
  'webhook.disabled': {
    description: 'The service gave up on another webhook of the account, or a revocation disabled it.',
    object: { status: 'disabled', disabled_reason: 'retries_exhausted' },
  },
  'webhook.enabled': { description: 'A test or a new secret enabled another webhook.' },
  'webhook.test': { description: 'You tested the webhook. The filter does not matter.' },
  'agent.updated': {
    description: 'An entry of the directory changed, or its verification. `data.reason`: the operator hid it.',
  },
  'status.changed': {
    description:
      'The operator published or updated an incident or a maintenance. Every account hears it, unless it is suspended.',
  },
  'canary.updated': {
    description: 'The operator published a warrant canary. Every account hears it, unless it is suspended.',
  },
};
export const TOLD_EVENT_TYPES = Object.keys(TOLD_EVENTS) as EventType[];
