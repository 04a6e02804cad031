import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { Bus } from '../../entities/database/bus.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { administer } from '../setup/postgres.ts';
import { heardBy, newBus as newBusAt, server } from './bus.ts';

const url = await newDatabaseUrl();
const observer = new pg.Client({ connectionString: url });
await observer.connect();
atEnd(() => observer.end());

const newBus = () => newBusAt(url);
const withResolvers = () => Promise.withResolvers<void>();
const eventually = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 240_000, interval: 20 });

const { name } = (await observer.query<{ name: string }>('select current_database() as name')).rows[0]!;
const SESSIONS = 'from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
const sessions = async () => (await observer.query(`select query ${SESSIONS}`)).rows;
const terminate = (query: string) =>
  observer.query(`select pg_terminate_backend(pid) ${SESSIONS} and query like $1`, [query]);

describe('Two buses on one database', () => {
  it('hear each other, and each hears its own changes at once and once', async () => {
    const [one, two] = [await newBus(), await newBus()];
    const [heardByOne, heardByTwo] = [heardBy(one), heardBy(two)];
    one.publish([server('SRV-1'), { kind: 'balance', accountId: 'acct_1', id: null }]);
    expect(heardByOne).toEqual([server('SRV-1'), { kind: 'balance', accountId: 'acct_1', id: null }]);
    await eventually(() => expect(heardByTwo).toEqual(heardByOne));
    two.publish([server('SRV-2', '')]);
    // Messages of the second come after those of the first, so the first would have heard itself again by now.
    await eventually(() => expect(heardByOne.slice(2)).toEqual([server('SRV-2', '')]));
    expect(heardByTwo).toHaveLength(3);
  });

  it('send a row that changed many times in a moment only a few times', async () => {
    const [one, two] = [await newBus(), await newBus()];
    const heard = heardBy(two);
    for (let i = 0; i < 1000; i++) one.publish([server('SRV-1'), server('SRV-2')]);
    await eventually(() => expect(heard).toContainEqual(server('SRV-2')));
    one.publish([server('SRV-3')]);
    await eventually(() => expect(heard).toContainEqual(server('SRV-3')));
    expect(heard).toContainEqual(server('SRV-1'));
    expect(heard.length).toBeLessThan(20);
  });
});

describe('A bus whose connection is lost', () => {
  it('connects again, and tells all listeners that any row may have changed', async () => {
    const [one, two] = [await newBus(), await newBus()];
    const heard = heardBy(two);
    await terminate('listen %');
    await eventually(() => expect(two.connected).toBe(false));
    await eventually(() => expect([one.connected, two.connected]).toEqual([true, true]));
    expect(heard).toEqual(
      expect.arrayContaining(
        ['server', 'topUp', 'balance', 'credential', 'operatorEvent', 'agent'].map((kind) => ({
          kind,
          accountId: '',
          id: null,
        })),
      ),
    );
    one.publish([server('SRV-1')]);
    await eventually(() => expect(heard).toContainEqual(server('SRV-1')));
    expect(heard.filter(({ id }) => id === 'SRV-1')).toHaveLength(1);
    expect((await sessions()).filter(({ query }) => query.startsWith('listen'))).toHaveLength(2);
  });

  /** Ends the sending session, and allows no other. The sessions that listen stay. */
  async function cutSender(): Promise<() => Promise<void>> {
    const allow = (yes: boolean) =>
      administer(inject('postgresUrl'), `alter database ${name} allow_connections ${yes}`);
    onTestFinished(() => allow(true));
    await allow(false);
    await terminate('%pg_notify%');
    return () => allow(true);
  }

  /** The database refuses a connection, after those that buses asked for before. */
  async function refused(): Promise<void> {
    for (let turn = 0; turn < 3; turn++)
      await expect(new pg.Client({ connectionString: url }).connect()).rejects.toThrow();
  }

  it('sends a message as soon as it can send again, also after a loss of its connection', async () => {
    const [one, two] = [await newBus(), await newBus()];
    const heard = heardBy(two);
    one.publish([server('SRV-1')]);
    await eventually(() => expect(heard).toEqual([server('SRV-1')]));
    const restore = await cutSender();
    one.publish([server('SRV-2')]);
    await refused();
    await restore();
    await eventually(() => expect(heard).toEqual([server('SRV-1'), server('SRV-2')]));
  });

  it('sends that any row may have changed if too many messages wait', async () => {
    const [one, two] = [await newBus(), await newBus()];
    const heard = heardBy(two);
    const restore = await cutSender();
    one.publish(Array.from({ length: 10_001 }, (_, at) => server(`SRV-${at}`)));
    await refused();
    await restore();
    await eventually(() =>
      expect(heard.map(({ kind }) => kind)).toEqual([
        'server',
        'topUp',
        'balance',
        'credential',
        'operatorEvent',
        'agent',
      ]),
    );
    expect(new Set(heard.map(({ accountId, id }) => accountId + id))).toEqual(new Set(['null']));
  });

  it('loses no more than a message that cannot be sent', async () => {
    const [one, two] = [await newBus(), await newBus()];
    const heard = heardBy(two);
    one.publish([server('x'.repeat(9000))]);
    await eventually(() => {
      one.publish([server('SRV-1')]);
      expect(heard).toContainEqual(server('SRV-1'));
    });
    expect((await sessions()).filter(({ query }) => query.includes('pg_notify'))).toHaveLength(1);
  });
});

describe('A closed bus', () => {
  it('has no session, throws nothing, and calls no listeners for other processes', async () => {
    const [open, closed] = [await newBus(), await newBus()];
    closed.publish([server('SRV-1')]);
    await closed.close();
    await closed.close();
    const heard = heardBy(closed);
    open.publish([server('SRV-2')]);
    closed.publish([server('SRV-3')]);
    await open.close();
    await eventually(async () => expect(await sessions()).toEqual([]));
    expect(heard).toEqual([server('SRV-3')]);
  });

  it('stays closed when it rests before it connects again', async () => {
    const [bus, other] = [await newBus(), await newBus()];
    const heard = heardBy(bus);
    const cutOff = async () => {
      await terminate('listen %');
      await eventually(() => expect(other.connected).toBe(false));
    };
    await cutOff();
    await eventually(() => expect(bus.connected).toBe(false));
    await bus.close();
    // The other bus rests equally long. When it returns for the second time, the first would have returned, too.
    await eventually(() => expect(other.connected).toBe(true));
    await cutOff();
    await eventually(() => expect(other.connected).toBe(true));
    expect(await sessions()).toHaveLength(1);
    expect(heard).toEqual([]);
  });

  it('stays closed when it is connecting', async () => {
    const bus = await newBus();
    const heard = heardBy(bus);
    const [begun, going, ended] = [withResolvers(), withResolvers(), withResolvers()];
    const connect = pg.Client.prototype.connect as (this: pg.Client) => Promise<pg.Client>;
    const spy = vi.spyOn(pg.Client.prototype, 'connect').mockImplementationOnce(async function (this: pg.Client) {
      this.once('end', ended.resolve);
      begun.resolve();
      await going.promise;
      return connect.call(this);
    } as never);
    onTestFinished(() => spy.mockRestore());
    await terminate('listen %');
    await begun.promise;
    await bus.close();
    going.resolve();
    await ended.promise;
    await eventually(async () => expect(await sessions()).toEqual([]));
    expect([bus.connected, heard]).toEqual([false, []]);
  });

  it('gives up starting where no database answers', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const bus = new Bus(`postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`);
    const heard = heardBy(bus);
    const asked = once(server, 'connection');
    const starting = bus.start();
    await asked;
    await bus.close();
    await starting;
    expect([bus.connected, heard]).toEqual([false, []]);
  });
});

it('A change is heard by a client that speaks only PostgreSQL', async () => {
  const bus = await newBus();
  const heard: string[] = [];
  observer.on('notification', ({ payload = '' }) => heard.push(payload));
  await observer.query('listen freehold');
  bus.publish([server('SRV-1')]);
  await eventually(() => expect(heard).toEqual([expect.stringMatching(/^[0-9a-f-]{36} server acct_1 SRV-1$/)]));
  const foreign = heardBy(bus);
  await administer(url, `select pg_notify('freehold', 'psql task  payments')`);
  await eventually(() => expect(foreign).toEqual([{ kind: 'task', accountId: '', id: 'payments' }]));
});
