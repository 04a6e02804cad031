/** Recording many changes at once writes the same rows as recording each alone. */
import { beforeAll, describe, expect, it } from 'vitest';
import { SshKey } from '../../entities/accounts/ssh-key.ts';
import type { Database } from '../../entities/database/database.ts';
import { type Actor, SYSTEM } from '../../entities/history/audit.ts';
import { type Happening, record, recordAll } from '../../entities/history/record.ts';
import { newId, newOrderNumber } from '../../entities/ids.ts';
import { Server } from '../../entities/servers/server.ts';
import { Webhook } from '../../entities/webhooks/webhook.ts';
import { newDatabase, truncate } from '../setup/database.ts';

let db: Database;
beforeAll(async () => {
  db = await newDatabase();
});

const KEY_ACTOR: Actor = { type: 'api_key', id: 'key_1', name: `it's "deploy"`, requestId: 'req_1' };
type Given = Happening & { accountId: string; subject: string };

async function newServer(accountId: string): Promise<string> {
  const orderNumber = newOrderNumber('SRV');
  const row = { id: newId('srv'), accountId, orderNumber, kind: 'VPS' as const, status: 'RUNNING' as const };
  const order = {
    hostname: 'web',
    serviceCode: 'vps-1',
    region: 'ams',
    os: 'debian-13',
    userData: Buffer.from('secret'),
  };
  await db.source.manager.insert(Server, { ...row, ...order, priceMonthMicros: 2n ** 60n, setupFeeMicros: 0n });
  return orderNumber;
}
async function newSshKey(accountId: string): Promise<string> {
  const row = { id: newId('sshkey'), accountId, name: 'laptop', publicKey: 'ssh-ed25519 AAAA', type: 'ssh-ed25519' };
  await db.source.manager.insert(SshKey, { ...row, bits: 256, fingerprint: newId('sshkey') });
  return row.id;
}
const newWebhook = (accountId: string, ...eventFilter: string[]) =>
  db.source.manager.insert(Webhook, {
    ...{ id: newId('whk'), accountId, url: 'https://example.org/', eventFilter, secret: Buffer.from('s') },
  });

/** All written rows, without the values that differ each time. */
async function written() {
  const [events, audit, deliveries, tasks] = await Promise.all(
    [
      `select account_id, type, subject, data from event order by account_id, subject, type`,
      `select account_id, action, actor_type, actor_id, actor_name, resource_type, resource_id, request_id, method, path, status
        from audit_entry order by account_id, resource_id, action`,
      `select delivery.account_id, webhook_id, event_type, snapshot, status, attempts, event.subject, next_attempt_at is null as over
        from webhook_delivery delivery join event on event.id = event_id left join webhook_snapshot using (event_id) order by webhook_id, event.subject, event_type`,
      `select lane, process, subject, account_id, step, state from task order by subject`,
    ].map((sql) => db.query<object>(sql)),
  );
  return { events, audit, deliveries, tasks };
}
const empty = () => truncate(db, 'event, audit_entry, webhook_delivery, webhook_snapshot, task');

describe('recordAll', () => {
  it('writes the events, audit entries and deliveries that record writes one by one', async () => {
    const [one, two, silent] = [newId('acct'), newId('acct'), newId('acct')];
    await newWebhook(one, '*');
    await newWebhook(one, 'server.*', 'status.changed');
    await newWebhook(two, 'server.renewed');
    await newWebhook(two, 'ssh_key.*');
    const given: Given[] = [];
    for (const accountId of [one, two, silent]) {
      for (let i = 0; i < 3; i++) {
        const server = { resource: 'server', accountId, subject: await newServer(accountId) } as const;
        given.push({ ...server, type: 'server.renewed', actor: SYSTEM, data: { paidUntil: `it's\\ "${i}" ä` } });
        given.push({ ...server, type: 'server.updated', actor: KEY_ACTOR });
      }
      const key = { resource: 'ssh_key', accountId, subject: await newSshKey(accountId) } as const;
      given.push({ ...key, type: 'ssh_key.created', actor: KEY_ACTOR, data: { deep: { list: [1, null, '0'] } } });
      given.push({ ...key, subject: newId('sshkey'), type: 'ssh_key.deleted', actor: SYSTEM });
      given.push({ resource: 'session', accountId, subject: newId('tok'), type: 'session.revoked', actor: KEY_ACTOR });
    }
    given.push({ resource: 'incident', accountId: '', subject: newId('inc'), type: 'status.changed', actor: SYSTEM });

    await empty();
    await db.transaction(async (tx) => {
      for (const { accountId, subject, ...happening } of given) await record(tx, accountId, subject, happening);
    });
    await db.waker.idle();
    const each = await written();
    await empty();
    await db.transaction((tx) => recordAll(tx, given));
    await db.waker.idle();
    expect(await written()).toEqual(each);
    expect(each.events).toHaveLength(given.length);
    expect(each.audit).toHaveLength(given.length);
    expect(each.deliveries!.length).toBeGreaterThan(given.length / 2);
    expect(JSON.stringify(each.deliveries, (_, v) => (typeof v === 'bigint' ? `${v}` : v))).not.toMatch(
      /happening|secret/,
    );
    expect(each.tasks).toHaveLength(4);
  });

  it('takes one statement for a thousand changes of a kind, and wakes a busy webhook again', async () => {
    await empty();
    const accountId = newId('acct');
    await newWebhook(accountId, '*');
    const subject = await newServer(accountId);
    const happening = { resource: 'server', accountId, subject, type: 'server.renewed', actor: SYSTEM } as const;
    await db.transaction((tx) => recordAll(tx, [happening]));
    await db.waker.idle();
    await db.query(`update task set leased_by = 'somebody'`);
    let statements = 0;
    await db.transaction((tx) => {
      const query = tx.query.bind(tx);
      tx.query = (...given) => {
        statements++;
        return query(...given);
      };
      return recordAll(tx, Array(1000).fill(happening));
    });
    expect(statements).toBe(1);
    await db.waker.idle();
    const [counted] = await db.query(
      `select (select count(*)::int from event) as events, (select count(distinct event_id)::int from webhook_delivery) as told,
        (select signals > 0 from task) as signalled`,
    );
    expect(counted).toEqual({ events: 1001, told: 1001, signalled: true });
  });

  it('writes nothing without changes', async () => {
    await empty();
    await db.transaction((tx) => recordAll(tx, []));
    expect((await written()).events).toEqual([]);
  });
});
