/** Orders while a synchronous standby confirms no commit. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { startPair } from '../setup/programs/standby.ts';

const { url, ownerUrl, ...pair } = await startPair(atEnd);
const { newAccount } = await startFreehold({ DATABASE_URL: url, MIGRATION_DATABASE_URL: ownerUrl, ROLES: 'api' });

it('A repeated request gets its kept answer only when the standby has it, too', async () => {
  const account = await newAccount();
  await account.fund(20);
  const primary = new pg.Client(ownerUrl);
  await primary.connect();
  onTestFinished(() => primary.end());
  // A login notes the minute of its last use, and would wait for the standby itself.
  await primary.query(`update session set last_used_at = now() + interval '1 day'`);
  await primary.query(`alter system set synchronous_standby_names = '*'`);
  await primary.query('select pg_reload_conf()');
  await eventually(
    async () => (await primary.query(`select from pg_stat_replication where sync_state = 'sync'`)).rowCount,
  );
  pair.freezeStandby(true);
  onTestFinished(() => pair.freezeStandby(false));

  let answered = 0;
  const order = account
    .rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'web' }, { 'idempotency-key': 'order-1' })
    .finally(() => answered++);
  // PostgreSQL ends its wait for the standby, and shows the order to others. So does the end of its main process.
  const ended = await eventually(async () => {
    const { rowCount } = await primary.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep' and query = 'COMMIT'`,
    );
    return rowCount;
  });
  expect(ended).toBeGreaterThan(0);
  await eventually(async () => (await primary.query('select from server')).rowCount);
  // The service repeats the request by itself, and waits for the standby.
  await eventually(
    async () => (await primary.query(`select from pg_stat_activity where wait_event = 'SyncRep'`)).rowCount,
    5,
  );
  expect(answered).toBe(0);

  pair.freezeStandby(false);
  expect(await order).toMatchObject({ status: 200, body: { hostname: 'web' } });
  expect((await primary.query('select from server')).rowCount).toBe(1);
});
