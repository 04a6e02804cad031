/** Requests while a synchronous standby confirms no commit. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import type { Queryable } from '../../entities/database/transaction.ts';
import { type KeyedRequest, KeptRequest, KeyTaken } from '../../entities/idempotency.ts';
import { sign, version2 } from '../payments/x402/clients.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { startPair } from '../setup/programs/standby.ts';
import { VAULT } from '../setup/vault.ts';

const { url, ownerUrl, ...pair } = await startPair(atEnd);
const { db, newAccount } = await startFreehold({ DATABASE_URL: url, MIGRATION_DATABASE_URL: ownerUrl, ROLES: 'api' });
const primary = new pg.Client(ownerUrl);
atEnd(() => primary.end());
const rowCount = async (sql: string) => (await primary.query(sql)).rowCount;

beforeAll(async () => {
  await primary.connect();
  await primary.query(`alter system set synchronous_standby_names = '*'`);
  await primary.query('select pg_reload_conf()');
  await eventually(() => rowCount(`select from pg_stat_replication where sync_state = 'sync'`));
});

/** Stops the standby. Each commit waits until the returned function lets it go on. */
async function stopStandby(): Promise<() => void> {
  // A login notes the minute of its last use, and would wait for the standby itself.
  await primary.query(`update session set last_used_at = now() + interval '1 day'`);
  pair.freezeStandby(true);
  const goOn = () => pair.freezeStandby(false);
  onTestFinished(goOn);
  return goOn;
}

it('A repeated request gets its kept answer only when the standby has it, too', async () => {
  const account = await newAccount();
  await account.fund(20);
  const goOn = await stopStandby();
  let answered = 0;
  const order = account
    .rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'web' }, { 'idempotency-key': 'order-1' })
    .finally(() => answered++);
  // PostgreSQL ends its wait for the standby, and shows the order to others. So does the end of its main process.
  const ended = await eventually(() =>
    rowCount(
      `select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep' and query = 'COMMIT'`,
    ),
  );
  expect(ended).toBeGreaterThan(0);
  await eventually(() => rowCount('select from server'));
  // The service repeats the request by itself, and waits for the standby.
  await eventually(() => rowCount(`select from pg_stat_activity where wait_event = 'SyncRep'`), 5);
  expect(answered).toBe(0);
  goOn();
  expect(await order).toMatchObject({ status: 200, body: { hostname: 'web' } });
  expect(await rowCount('select from server')).toBe(1);
});

it('A repeated payment gets its order only when the standby has it, too', async () => {
  const account = await newAccount();
  const order = { service_code: 'vps-1', hostname: 'paid' };
  const signed = await sign(await account.rest('POST', '/v1/servers', order));
  const pay = () => account.rest('POST', '/v1/servers', order, version2(signed));
  const first = await pay();
  expect(first.status).toBe(200);
  const goOn = await stopStandby();
  const repeated = pay();
  expect(await Promise.race([repeated, sleep(1_000, 'waits')])).toBe('waits');
  goOn();
  expect((await repeated).body).toEqual(first.body);
});

it('A kept answer that a failover loses after it was found is none', async () => {
  const request: KeyedRequest = { accountId: 'acct_a', method: 'POST', path: '/', key: 'lost', input: {} };
  const kept = new KeptRequest(request, VAULT);
  await db.transaction(async (tx) => {
    await kept.claim(tx);
    await kept.keep(tx, '{}');
  });
  expect(await kept.find(db)).toMatchObject({ answer: '{}' });
  const losing: Queryable = {
    manager: db.manager,
    async query<T>(sql: string, parameters?: unknown[]) {
      const rows = await db.query<T>(sql, parameters);
      await db.query('delete from idempotency_key');
      return rows;
    },
  };
  await expect(kept.find(losing)).rejects.toThrow(KeyTaken);
  expect(await kept.find(db)).toBeUndefined();
});
