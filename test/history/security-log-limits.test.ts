/** Floods of attacks make few entries, and hide no attack on another account. */
import { describe, expect, it, vi } from 'vitest';
import { onBehalfOf } from '../../entities/caller.ts';
import type { EventType } from '../../entities/history/event.ts';
import { Payers } from '../../resolvers/accounts/payers.ts';
import { SECURITY_EVENTS, SecurityLog } from '../../resolvers/accounts/security-log.ts';
import { asSuperuser } from '../setup/database.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';

const { db, newAccount } = await startFreehold();

// biome-ignore lint/suspicious/noExplicitAny: each test checks the type of the members that it reads
type Entry = any;
const entriesOf = async (account: TestAccount, action: string): Promise<Entry[]> =>
  (await account.rest('GET', `/v1/account/audit-log?action=${action}`)).body.data;
const entryOf = (account: TestAccount, action: string): Promise<Entry> =>
  eventually(async () => (await entriesOf(account, action))[0]);
const newLog = () => new SecurityLog(db, async () => {});
/** Lets entries grow older, so that the next ones may come. */
const timePasses = () =>
  asSuperuser(db, `update audit_entry set created_at = created_at - interval '10 minutes' where action like '%.%'`);

describe('The security log', () => {
  it('counts a flood in one entry in ten minutes, also with several processes', async () => {
    const account = await newAccount();
    const logs = [newLog(), newLog()];
    const attack = { type: 'session.login_failed', account: account.email, address: null } as const;
    for (const log of logs) for (let i = 0; i < 50; i++) log.note(attack);
    await Promise.all(logs.map((log) => log.flush()));
    const first = await entriesOf(account, 'session.login_failed');
    expect(first).toHaveLength(1);
    await timePasses();
    for (const log of logs) for (let i = 0; i < 10; i++) log.note(attack);
    await Promise.all(logs.map((log) => log.flush()));
    expect(await entriesOf(account, 'session.login_failed')).toHaveLength(2);
  });

  it('carries the count of a flood into its next entry', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { id } = await newAccount();
      const counts = async () =>
        (
          await db.query<{ count: number }>(
            `select count from audit_entry where account_id = $1 and action = 'session.code_failed' order by id`,
            [id],
          )
        ).map(({ count }) => count);
      const log = newLog();
      const attack = { type: 'session.code_failed', account: id, address: null } as const;
      for (let i = 0; i < 7; i++) log.note(attack);
      vi.useRealTimers();
      await eventually(async () => (await counts()).length === 1);
      expect(await counts()).toEqual([7]);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      for (let i = 0; i < 4; i++) log.note(attack);
      await timePasses();
      vi.useRealTimers();
      await log.flush();
      expect(await counts()).toEqual([7, 4]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('waits for the turns of no account that is attacked', async () => {
    const [busy, other] = [await newAccount(), await newAccount()];
    const payers = new Payers(db);
    const log = new SecurityLog(db, async (accountId) => void (await payers.has(accountId)));
    const held = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock(7654321)');
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    const wait = () => db.query('select pg_advisory_lock_shared(7654321), pg_advisory_unlock_shared(7654321)');
    const calls = Array.from({ length: 40 }, () => onBehalfOf({ kind: 'account', group: busy.id }, wait));
    try {
      for (const { id } of [busy, other]) log.note({ type: 'session.login_failed', account: id, address: null });
      const entries = () =>
        db.query(`select from audit_entry where account_id = $1 and action = 'session.login_failed'`, [other.id]);
      await eventually(async () => (await entries()).length > 0, 10);
    } finally {
      held.resolve();
      await Promise.all([holder, ...calls]);
      await log.flush();
    }
  });

  it('keeps 20 entries an hour for the credentials of an account, and counts attacks on its others in one', async () => {
    const { id } = await newAccount();
    const log = newLog();
    for (let i = 0; i < 300; i++)
      log.note({ type: 'api_key.refused', account: id, address: null, resource: { type: 'api_key', id: `key_${i}` } });
    await log.flush();
    const rows = await db.query<{ kind: string; entries: number; attacks: number }>(
      `select resource_type as kind, count(*)::int as entries, sum(count)::int as attacks from audit_entry
        where account_id = $1 and action = 'api_key.refused' group by 1 order by 1`,
      [id],
    );
    expect(rows).toEqual([
      { kind: 'account', entries: 1, attacks: 280 },
      { kind: 'api_key', entries: 20, attacks: 20 },
    ]);
  });

  it('names at most 20 credentials of an account in an hour, also with several processes and over time', async () => {
    const { id } = await newAccount();
    const noted = async (from: number) => {
      const logs = [newLog(), newLog()];
      for (const [i, log] of logs.entries())
        for (let key = 0; key < 15; key++) {
          const resource = { type: 'api_key', id: `key_${from + 15 * i + key}` } as const;
          log.note({ type: 'api_key.refused', account: id, address: null, resource });
        }
      for (const log of logs) await log.flush();
    };
    await noted(0);
    await timePasses();
    await noted(100);
    const rows = await db.query<{ kind: string; entries: number }>(
      `select resource_type as kind, count(*)::int as entries from audit_entry
        where account_id = $1 and action = 'api_key.refused' group by 1 order by 1`,
      [id],
    );
    expect(rows).toEqual([
      { kind: 'account', entries: 2 },
      { kind: 'api_key', entries: 20 },
    ]);
  });

  it('writes at most 30 entries an hour of an account', async () => {
    const { id } = await newAccount();
    for (let round = 0; round < 5; round++) {
      const log = newLog();
      const types = [...SECURITY_EVENTS] as EventType[];
      for (const type of types) log.note({ type, account: id, address: null });
      await log.flush();
      await timePasses();
    }
    const actions = [...SECURITY_EVENTS];
    const sql = 'select count(*)::int as entries from audit_entry where account_id = $1 and action = any($2)';
    expect(await db.query(sql, [id, actions])).toEqual([{ entries: 30 }]);
  });

  it('tells an account of an attack while a flood comes for the thousands of keys of another', async () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    try {
      const [flooded, quiet] = [await newAccount(), await newAccount()];
      const security = newLog();
      for (let i = 0; i < 10_500; i++)
        security.note({
          type: 'api_key.refused',
          account: flooded.id,
          address: null,
          resource: { type: 'api_key', id: `key_${i}` },
        });
      security.note({ type: 'session.code_failed', account: quiet.id, address: null });
      expect(await entryOf(quiet, 'session.code_failed')).toMatchObject({ count: 1 });
      await security.flush();
    } finally {
      log.mockRestore();
    }
  });

  it('writes nothing about names and credentials that no account has, but counts for the operator', async () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    try {
      const count = async () =>
        (
          await db.query(
            `select (select count(*)::int from audit_entry) as entries, (select count(*)::int from event) as events`,
          )
        )[0];
      const before = await count();
      const security = newLog();
      for (let i = 0; i < 3; i++) security.login(`stranger-${i}@example.org`, 'invalid_login', null);
      security.count('unknown credentials');
      await security.flush();
      expect(log.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
        expect.objectContaining({
          level: 'info',
          msg: 'Refused in the last minute: 1 unknown credentials, 3 logins with unknown names.',
        }),
      ]);
      expect(await count()).toEqual(before);
    } finally {
      log.mockRestore();
    }
  });
});
