/** Periodic work: its schedule, the alert of a low balance, and the end of old credentials. The tests move time in the database. */
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { ApiKey, Session } from '../../entities/accounts/credential.ts';
import { idFloor } from '../../entities/ids.ts';
import { truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { HOUR_MS, openShop, PRICE } from '../setup/shop.ts';

const shop = await openShop(atEnd);
beforeEach(() => truncate(shop.db, 'task, server, event, audit_entry'));

const inDays = (days: number) => new Date(Date.now() + days * 24 * HOUR_MS);

describe('Periodic work', () => {
  it('has one task in the cluster for each kind, even if it is scheduled often', async () => {
    await Promise.all([1, 2, 3].map(() => shop.provisioning.schedule()));
    const tasks = await shop.db.query('select subject from task order by 1');
    expect(tasks).toEqual(
      [
        'audit-links',
        'audit-retention',
        'audit-signature',
        'books-proof',
        'credential-retention',
        'driver-health',
        'history-retention',
        'low-balance',
        'meter-dedicated',
        'meter-vps',
        'observer',
        'operator-sessions',
        'proposal-expiry',
        'renewals',
        'webhook-retention',
        'webhook-sweep',
      ].map((name) => ({
        subject: `cron:${name}`,
      })),
    );
  });

  it('runs once for all missed ticks, and keeps its time when it is scheduled again', async () => {
    await shop.provisioning.schedule();
    const worker = shop.provisioning.newWorker();
    await worker.drain('periodic');
    await shop.db.query(`update task set run_at = now() - interval '5 hours' where subject = 'cron:low-balance'`);
    expect(await worker.drain('periodic')).toBe(1);
    await shop.provisioning.schedule();
    expect(await worker.drain('periodic')).toBe(0);
  });
});

describe('An account whose balance does not cover the renewals of its next days', () => {
  it('gets an event, once in 24 hours', async () => {
    const account = await shop.account(2n * PRICE - 1n);
    await shop.server(account, { paidUntil: inDays(1) });
    await shop.server(account, { paidUntil: inDays(6), status: 'REBOOTING' });
    await shop.tick('low-balance');
    await shop.tick('low-balance');
    expect(await shop.events(account)).toEqual(['balance.low']);
    expect(await shop.db.query(`select data from event where subject = $1`, [account])).toEqual([
      { data: { balanceUsd: 11.999999, requiredUsd: 12 } },
    ]);
    await shop.db.query(`update account set low_balance_alerted_at = low_balance_alerted_at - interval '24 hours'`);
    await shop.tick('low-balance');
    expect(await shop.events(account)).toHaveLength(2);
  });

  it.each([
    ['the balance covers them', 2n * PRICE, {}, 7],
    ['they are later than that', PRICE, { paidUntil: inDays(8) }, 7],
    ['a server does not renew itself', PRICE, { autoRenew: false }, 7],
    ['a server is suspended already', PRICE, { status: 'SUSPENDED' }, 7],
    ['a server is not paid yet', PRICE, { paidUntil: null, status: 'PROVISIONING' }, 7],
    ['it wants to know of no day', PRICE, {}, 0],
  ] as const)('is not told if %s', async (_, micros, set, days) => {
    const account = await shop.account(micros);
    await shop.db.query('update account set low_balance_alert_days = $2 where id = $1', [account, days]);
    await shop.server(account, { paidUntil: inDays(1) });
    await shop.server(account, { paidUntil: inDays(2), ...set });
    if (days === 0) await shop.server(account, { paidUntil: inDays(2) });
    await shop.tick('low-balance');
    expect(await shop.events(account)).toEqual([]);
  });

  it('gets the event the wanted number of days ahead', async () => {
    const account = await shop.account(0n);
    await shop.server(account, { paidUntil: inDays(20) });
    await shop.tick('low-balance');
    expect(await shop.events(account)).toEqual([]);
    await shop.db.query('update account set low_balance_alert_days = 30 where id = $1', [account]);
    await shop.tick('low-balance');
    expect(await shop.events(account)).toEqual(['balance.low']);
  });
});

describe('Credentials', () => {
  it('are kept for 30 days after their end, and spent refresh tokens while their family lives', async () => {
    const session = async (name: string, created: number, set: Partial<Session>) => {
      const { expiresAt = inDays(-created + 1), refreshExpiresAt = inDays(-created + 30), ...ended } = set;
      await shop.db.source.manager.insert(Session, {
        ...{
          id: `${idFloor('tok', inDays(-created).getTime())}${name}`.padEnd(30, '0'),
          accountId: 'acct',
          source: name,
        },
        ...{ familyId: 'tok', scope: 'full', accessDigest: randomBytes(32), refreshDigest: randomBytes(32) },
        ...{ expiresAt: expiresAt!, refreshExpiresAt: refreshExpiresAt!, familyExpiresAt: inDays(-created + 90) },
        ...ended,
      });
    };
    await session('open', 40, { refreshExpiresAt: inDays(1) });
    await session('expired', 61, {});
    await session('expiredlately', 59, {});
    await session('revoked', 40, { revokedAt: inDays(-31) });
    await session('revokedlately', 40, { revokedAt: inDays(-29) });
    await session('rotated', 80, { revokedAt: inDays(-79), rotatedAt: inDays(-79) });
    await session('rotatedlongago', 91, { revokedAt: inDays(-90), rotatedAt: inDays(-90) });
    const ofEnded = { familyId: 'ended', revokedAt: inDays(-79) };
    await session('rotatedofended', 80, { ...ofEnded, rotatedAt: inDays(-79) });
    await session('norefresh', 40, { refreshDigest: null, refreshExpiresAt: inDays(-39) });
    const key = (name: string, set: Record<string, Date | null>) =>
      shop.db.source.manager.insert(ApiKey, {
        ...{ id: `${idFloor('key', inDays(-100).getTime())}${name}`.padEnd(30, '0'), accountId: 'acct', name },
        ...{ scope: 'read', prefix: 'svc_live_0000', digest: randomBytes(32), status: 'ACTIVE', ...set },
      } as ApiKey);
    await key('active', {});
    await key('expires', { expiresAt: inDays(3) });
    await key('revoked', { revokedAt: inDays(-31) });
    await key('revokedlately', { revokedAt: inDays(-29) });
    await key('expired', { expiresAt: inDays(-31) });
    await shop.tick('credential-retention');
    const left = async (column: string, table: string) =>
      (await shop.db.query<{ name: string }>(`select ${column} as name from ${table} order by 1`)).map(
        ({ name }) => name,
      );
    expect(await left('source', 'session')).toEqual(['expiredlately', 'open', 'revokedlately', 'rotated']);
    // The last one is that of the shop.
    expect(await left('name', 'api_key')).toEqual(['active', 'expires', 'revokedlately', 'test']);
  });
});
