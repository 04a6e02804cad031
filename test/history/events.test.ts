/** Each kind of event in the contract's table: the test causes it, and a webhook verifies its message. */
import { describe, expect, it } from 'vitest';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { EVENT_TYPES, type EventType } from '../../entities/history/event.ts';
import { eventually } from '../setup/freehold.ts';
import { type Received, verify } from '../setup/receiver.ts';
import { CAUSES } from './event-causes.ts';
import { db, other, owner, receiver, secret } from './event-world.ts';
import { OPERATOR_CAUSES } from './operator-event-causes.ts';

/**
 * Events outside of the contract's table. The tests of OAuth cover its clients, and those of the security log cover
 * attacks. Those of resets cover new logins by the operator. Those of messages cover what the operator hears, and those of a restore its events. Coins
 * belong to no account, so no webhook receives their events. The same holds for acts that only the operator sees.
 */
const BEYOND: EventType[] = [
  ...([
    'oauth_client.created',
    'oauth_client.removed',
    'oauth_client.secret_rotated',
    'account.credentials_revoked',
    'account.password_reset',
    'account.updated',
    'account.recovered',
    'account.restored',
    'backup.restored',
    'account.totp_reset',
    'coin.updated',
    'host.updated',
    'host.retired',
    'host.wiped',
    'address_pool.updated',
  ] as const),
  ...([
    'catalog.updated',
    'task.updated',
    'finding.reported',
    'engine.updated',
    'engine.braked',
    'engine.released',
    'manual_job.closed',
  ] as const),
  ...([
    'session.login_failed',
    'session.code_failed',
    'session.login_throttled',
    'session.refused',
    'session.network_refused',
    'api_key.refused',
    'api_key.network_refused',
    'oauth_client.refused',
    'oauth_client.network_refused',
  ] as const),
  ...([
    'operator.signed_in',
    'operator.signed_out',
    'operator.refused',
    'operator.invitation_opened',
    'proposal.updated',
    'account.limits_changed',
  ] as const),
  ...([
    'balance.adjusted',
    'payment.unmatched',
    'payment.held',
    'payment.late',
    'payment.assigned',
    'payment.reversed',
    'payment.restored',
    'payment.written_off',
    'payment.returned',
    'payment.looked_up',
    'payment.lost',
    'payment.missing',
    'payment.found',
    'gateway.warned',
    'message.received',
    'message.sent',
  ] as const),
];

it('each kind of event has a test', () => {
  expect(EVENT_TYPES.filter((type) => !CAUSES[type] && !OPERATOR_CAUSES[type] && !BEYOND.includes(type))).toEqual([]);
});

interface Body {
  data: { object: object };
}
/** The example of an event in the list of events. */
async function exampleOf(type: string): Promise<Body> {
  const { data } = (await owner.rest('GET', '/v1/webhooks/events')).body;
  return data.find((one: { type: string }) => one.type === type).example;
}
/** Only things of credentials that expire show when. */
const isAlways = (name: string) => name !== 'expires_at';
const namesIn = (body: Body) => [Object.keys(body), Object.keys(body.data.object).filter(isAlways).sort()];

/** Waits for the message of an event that was absent before its cause. */
const told = (received: Received[], known: ReadonlySet<Received>, type: string, subject: string | undefined) =>
  eventually(async () =>
    received.find(
      (message) =>
        !known.has(message) &&
        message.body.type === type &&
        (!subject ||
          [
            message.body.data.object.order_number,
            message.body.data.object.key_id,
            message.body.data.object.id,
          ].includes(subject)),
    ),
  );

describe('The event', () => {
  it.each(Object.entries(CAUSES))('%s reaches the webhook after its cause', async (type, [by, cause, shows]) => {
    const known = new Set([...receiver.received, ...other.received]);
    const subject = await cause();
    const message = await told(receiver.received, known, type, subject);
    expect(verify(secret, message)).toEqual(message.body);
    expect(message.body).toMatchObject({ account_id: owner.id, data: { object: shows } });
    expect(namesIn(message.body), 'as the list of events shows it').toEqual(namesIn(await exampleOf(type)));

    const events = await db.query<{ accountId: string; subject: string; createdAt: Date }>(
      `select account_id as "accountId", subject, created_at as "createdAt" from event where id = $1 and type = $2`,
      [message.body.id, type],
    );
    expect(events).toHaveLength(1);
    const [audit] = await db.query<{ actor: string }>(
      `select actor_type as actor from audit_entry where action = $1 and account_id = $2 and resource_id = $3 order by id desc limit 1`,
      [type, events[0]!.accountId, events[0]!.subject],
    );
    expect(audit!.actor === 'system' ? 'system' : audit!.actor === 'operator' ? 'operator' : 'caller').toBe(by);
    const everybody = type === 'status.changed' || type === 'canary.updated';
    if (everybody) await told(other.received, known, type, subject);
    else expect(other.received.filter(({ body }) => body.id === message.body.id)).toEqual([]);
  });

  it.each(Object.entries(OPERATOR_CAUSES))(
    '%s is in the log of the operator, and reaches no webhook',
    async (type, cause) => {
      const subject = await cause();
      const events = await db.query<{ accountId: string }>(
        `select account_id as "accountId" from event where type = $1 and subject = $2`,
        [type, subject],
      );
      expect(events).toEqual([{ accountId: OPERATOR_ACCOUNT }]);
      const audited = await db.query(
        'select actor_type as actor from audit_entry where action = $1 and account_id = $2 and resource_id = $3',
        [type, OPERATOR_ACCOUNT, subject],
      );
      expect(audited).toEqual([{ actor: 'operator' }]);
      const sent = await db.query(
        'select 1 from webhook_delivery join event on event.id = event_id where event.type = $1',
        [type],
      );
      expect(sent).toEqual([]);
    },
  );
});
