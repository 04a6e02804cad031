/** Errors of an unavailable database: those of the real drivers, and those of other systems. */
import { expect, inject, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { isConnectionLost, isDatabaseAway } from '../../entities/database/transaction.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { administer } from '../setup/postgres.ts';
import { startFaultProxy } from '../setup/programs/fault-proxy.ts';

const caught = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
const open = async (url?: string) => {
  const db = await Database.open(url ?? (await newDatabaseUrl()), { poolSize: 1 });
  onTestFinished(() => db.close().catch(() => {}));
  return db;
};

it('A statement after the loss of its connection says so', async () => {
  const db = await open();
  const error = await caught(
    db.transaction(async (tx) => {
      await tx.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {});
      await expect.poll(() => caught(tx.query('select 1')).then(String)).toContain('is not queryable');
      await tx.query('select 1');
    }),
  );
  expect(String(error)).toContain('is not queryable');
  expect([isConnectionLost(error), isDatabaseAway(error)]).toEqual([true, true]);
});

it('A savepoint after the loss of its connection says so', async () => {
  const db = await open();
  const error = await caught(
    db.transaction(async (tx) => {
      await tx.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {});
      await expect.poll(() => tx.manager.queryRunner!.isReleased).toBe(true);
      await tx.attempt((inner) => inner.query('select 1'));
    }),
  );
  expect([isConnectionLost(error), isDatabaseAway(error)]).toEqual([true, true]);
});

it('A closed pool is away, for statements and for transactions', async () => {
  const db = await Database.open(await newDatabaseUrl(), { poolSize: 1 });
  await db.close();
  for (const work of [db.query('select 1'), db.transaction((tx) => tx.query('select 1'))])
    expect(await caught(work)).toSatisfy(isDatabaseAway);
});

it.each(['127.0.0.1', 'localhost'])('A port of %s without a listener is away', async (host) => {
  const proxy = await startFaultProxy(await newDatabaseUrl());
  const url = new URL(proxy.url);
  url.hostname = host;
  const db = await open(url.href);
  await proxy.close();
  const errors = [await caught(db.query('select 1')), await caught(db.query('select 1'))];
  for (const error of errors) expect(error).toSatisfy(isDatabaseAway);
  expect(errors.map((error) => (error as { code?: string }).code)).toContain('ECONNREFUSED');
});

it('A database that takes no connections is away, and so is one that takes no changes', async () => {
  const db = await open();
  const [{ name }] = (await db.query<{ name: string }>('select current_database() as name')) as [{ name: string }];
  const url = inject('postgresUrl');
  await db.query('set default_transaction_read_only = on');
  const readOnly = await caught(db.query('create table x (y int)'));
  expect(readOnly).toMatchObject({ code: '25006' });
  expect([isDatabaseAway(readOnly), isConnectionLost(readOnly)]).toEqual([true, false]);
  await administer(url, `alter database ${name} allow_connections false`);
  await administer(url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  await expect.poll(() => caught(db.query('select 1'))).toMatchObject({ code: '55000' });
  expect(await caught(db.query('select 1'))).toSatisfy(isDatabaseAway);
});

const withCode = (code: string, more: object = {}) => Object.assign(new Error('x'), { code, ...more });
it.each([
  ...['57P01', '57P02', '57P03', '57014', '53300', '25006', '08006', '08001', '40001', '40P01'].map((code) =>
    withCode(code),
  ),
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'].map(
    (code) => withCode(code),
  ),
  withCode('ENOENT', { syscall: 'connect' }),
  new AggregateError([withCode('ECONNREFUSED'), withCode('EHOSTUNREACH')]),
  new Error('x', { cause: new AggregateError([withCode('ETIMEDOUT')]) }),
  Object.assign(new Error('x'), { originalError: withCode('53300') }),
  new Error('timeout exceeded when trying to connect'),
  new Error('timeout expired'),
  new Error('Query read timeout'),
  new Error('Connection terminated'),
  new Error('Connection terminated unexpectedly'),
  new Error('Connection terminated due to connection timeout'),
  new Error('Client has encountered a connection error and is not queryable'),
  new Error('Client was closed and is not queryable'),
  new Error('Cannot use a pool after calling end on the pool'),
])('%s means that the database is away', (error) => {
  expect(isDatabaseAway(error)).toBe(true);
});

it.each([
  withCode('23505'),
  withCode('42P01'),
  withCode('22P02'),
  withCode('ENOENT', { syscall: 'open' }),
  new TypeError('x is not a function'),
  new AggregateError([new Error('x')]),
  'ECONNREFUSED',
  undefined,
])('%s means nothing of the kind', (error) => {
  expect(isDatabaseAway(error)).toBe(false);
});
