/** Reads from a real standby miss no commit. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { StandbyReads } from '../../entities/database/standby.ts';
import { atEnd } from '../setup/end.ts';
import { ENDPOINTS } from '../setup/endpoints.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { startPair } from '../setup/programs/standby.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';

const { url, ownerUrl, readUrl, ...pair } = await startPair(atEnd);
const freehold = await startFreehold({
  DATABASE_URL: url,
  MIGRATION_DATABASE_URL: ownerUrl,
  DATABASE_READ_URL: readUrl,
});
const { db } = freehold;
const onPrimary = 'not pg_is_in_recovery() as "isPrimary"';
const isAtPrimary = async () => (await db.reads.query<{ isPrimary: boolean }>(`select ${onPrimary}`))[0]!.isPrimary;
const follows = () => eventually(async () => !(await isAtPrimary()));

describe('With DATABASE_READ_URL', () => {
  beforeEach(follows);

  it('a read finds each write that ended before it', async () => {
    const account = await freehold.newAccount();
    let fromStandby = 0;
    for (let i = 0; i < 300; i++) {
      await db.query(`update account set email = $2 where id = $1`, [account.id, `${i}@example.org`]);
      const [row] = await db.reads.query<{ email: string; isPrimary: boolean }>(
        `select email, ${onPrimary} from account where id = $1`,
        [account.id],
      );
      expect(row!.email).toBe(`${i}@example.org`);
      if (!row!.isPrimary) fromStandby++;
    }
    expect(fromStandby).toBeGreaterThan(0);
  });

  it('reads that come at once share their questions', async () => {
    const before = questions();
    await Promise.all(Array.from({ length: 200 }, () => db.reads.query('select 1')));
    expect(questions() - before).toBeLessThan(20);
  });

  it('the primary answers while the standby stays behind, and the standby again afterwards', async () => {
    await pair.onStandby('select pg_wal_replay_pause()');
    const account = await freehold.newAccount();
    expect((await account.rest('GET', '/v1/account')).body).toMatchObject({ email: account.email });
    expect(await isAtPrimary()).toBe(true);
    await pair.onStandby('select pg_wal_replay_resume()');
    await follows();
  });

  it('no call fails while the standby dies and returns', async () => {
    const account = await freehold.newAccount();
    let isOver = false;
    const statuses = new Set<number>();
    const calls = Array.from({ length: 8 }, async () => {
      while (!isOver) statuses.add((await account.rest('GET', '/v1/servers')).status);
    });
    await pair.stopStandby();
    await eventually(isAtPrimary);
    await pair.startStandby();
    await follows();
    isOver = true;
    await Promise.all(calls);
    expect([...statuses]).toEqual([200]);
  });

  it('a standby that gives no answer delays the reads of a moment, and no others', async () => {
    pair.freezeStandby(true);
    onTestFinished(() => pair.freezeStandby(false));
    const waitedMs: number[] = [];
    for (const last = performance.now() + 8_000; performance.now() < last; await sleep(50)) {
      const begun = performance.now();
      expect(await isAtPrimary()).toBe(true);
      waitedMs.push(performance.now() - begun);
    }
    expect(waitedMs.filter((ms) => ms > 900).length).toBeLessThanOrEqual(1);
    pair.freezeStandby(false);
    await follows();
  });

  it('customers read from the standby, and wait there for their servers', async () => {
    const account = await freehold.newAccount();
    await account.fund(100);
    const { body: server } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'web' });
    const before = pair.log().length;
    const path = `/v1/servers/${server.order_number}?wait_for=running`;
    expect((await account.rest('GET', path)).body).toMatchObject({ status: 'running' });
    for (const [method, path, , availability] of ENDPOINTS) {
      if (method !== 'GET' || availability !== 'LIVE' || path === '/v1/oauth/introspect') continue;
      const { status } = await account.rest('GET', path.replace(/\{\w+\}/, server.order_number));
      expect([200, 404]).toContain(status);
    }
    const log = pair.log().slice(before);
    expect(log).toMatch(/from "?(server|account|top_up|audit_entry)/i);
    expect(log).not.toMatch(/ERROR: (?!.*unlogged)/);
  });

  it('the operator reads from the standby', async () => {
    const before = pair.log().length;
    // While the standby stays behind, the primary answers.
    await eventually(async () => {
      const answer = await freehold.operator('{ servers(limit: 5) { data { orderNumber } } accounts { id } }');
      expect(answer).toMatchObject({ data: { servers: { data: expect.any(Array) } } });
      return /from server/.test(pair.log().slice(before));
    }, 30);
    expect(pair.log()).not.toMatch(/ERROR: +cannot execute/);
  });
});

describe('DATABASE_READ_URL', () => {
  it('may lead to the primary, as after the end of another primary. The primary answers then', async () => {
    const reads = await StandbyReads.follow(db, url, url);
    expect(await reads.query('select 1 as one')).toEqual([{ one: 1 }]);
    await reads.close();
  });

  it('is refused if it names a standby of another server', async () => {
    const dataDir = newFolder();
    const other = await startEmbeddedPostgres(dataDir, ['fsync=off']);
    const apart = await Database.open(other.url, { ownerUrl: other.ownerUrl });
    await expect(StandbyReads.follow(apart, other.url, readUrl)).rejects.toThrow(/names no standby/);
    await apart.close();
    await other.stop();
    removeFolder(dataDir);
  });
});

/** The looks at the log of the standby. */
const questions = () => pair.log().split('pg_last_wal_replay_lsn').length;
