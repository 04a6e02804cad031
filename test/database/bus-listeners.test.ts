/** The listeners of a bus, in its own process. */
import { getEventListeners, once } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Change } from '../../entities/database/bus.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { heardBy, newBus as newBusAt, server } from './bus.ts';

const url = await newDatabaseUrl();

const newBus = () => newBusAt(url);

describe('A listener', () => {
  it('hears nothing after it has left', async () => {
    const bus = await newBus();
    const heard: Change[] = [];
    const leave = bus.listen((change) => heard.push(change));
    leave();
    bus.publish([server('SRV-1')]);
    expect(heard).toEqual([]);
  });

  it('hears changes of its kind and account, and those that may concern every account', async () => {
    const bus = await newBus();
    const heard: Change[] = [];
    const leave = bus.listen((change) => heard.push(change), { kind: 'server', accountId: 'acct_1' });
    const balance: Change = { kind: 'balance', accountId: 'acct_1', id: 'acct_1' };
    bus.publish([server('SRV-2', 'acct_2'), balance, server('SRV-1'), server('SRV-3', '')]);
    leave();
    bus.publish([server('SRV-1')]);
    expect(heard).toEqual([server('SRV-1'), server('SRV-3', '')]);
  });

  it('stops neither the publisher nor other listeners when it throws, and the process warns of it', async () => {
    const bus = await newBus();
    bus.listen(() => {
      throw new Error('A listener is broken.');
    });
    const heard = heardBy(bus);
    const warned = once(process, 'warning');
    bus.publish([server('SRV-1')]);
    expect(heard).toEqual([server('SRV-1')]);
    expect((await warned)[0].message).toBe('A listener is broken.');
  });
});

it('The number of changes grows with each change of the kinds alone', async () => {
  const bus = await newBus();
  const before = bus.changesOf(['server', 'balance']);
  bus.publish([server('SRV-1'), server('SRV-1'), { kind: 'credential', accountId: 'acct_1', id: null }]);
  expect(bus.changesOf(['server', 'balance'])).toBe(before + 2);
});

describe('The changes of one kind', () => {
  const { signal } = new AbortController();

  it('come once for each row, however often it changed unread', async () => {
    const bus = await newBus();
    const changes = bus.changes('server', 'acct_1', signal);
    for (let i = 0; i < 1000; i++) bus.publish([server('SRV-1'), server('SRV-2')]);
    expect(await changes.next()).toMatchObject({ value: server('SRV-1') });
    bus.publish([server('SRV-1')]);
    expect(await changes.next()).toMatchObject({ value: server('SRV-2') });
    expect(await changes.next()).toMatchObject({ value: server('SRV-1') });
    const next = changes.next();
    bus.publish([server('SRV-3')]);
    expect(await next).toMatchObject({ value: server('SRV-3') });
    await changes.return(undefined);
  });

  it('are those of one account, or of all', async () => {
    const bus = await newBus();
    const [ofOne, ofAll] = [bus.changes('server', 'acct_1', signal), bus.changes('server', undefined, signal)];
    const anybody: Change = { kind: 'server', accountId: '', id: null };
    const balance: Change = { kind: 'balance', accountId: 'acct_1', id: 'acct_1' };
    bus.publish([server('SRV-2', 'acct_2'), balance, server('SRV-1'), anybody]);
    for (const expected of [server('SRV-1'), anybody]) expect((await ofOne.next()).value).toEqual(expected);
    for (const expected of [server('SRV-2', 'acct_2'), server('SRV-1'), anybody])
      expect((await ofAll.next()).value).toEqual(expected);
    await Promise.all([ofOne.return(undefined), ofAll.return(undefined)]);
  });

  it('end when the signal aborts: during a wait, during a read, and before the start', async () => {
    const bus = await newBus();
    for (const when of ['waiting', 'reading', 'before'] as const) {
      const controller = new AbortController();
      if (when === 'before') controller.abort();
      const changes = bus.changes('server', undefined, controller.signal);
      bus.publish([server('SRV-1'), server('SRV-2')]);
      if (when !== 'before') expect((await changes.next()).value).toEqual(server('SRV-1'));
      if (when === 'waiting') await changes.next();
      const next = when === 'waiting' ? changes.next() : undefined;
      controller.abort();
      expect(await (next ?? changes.next())).toEqual({ value: undefined, done: true });
      expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    }
  });

  it('leave nothing behind when their reader goes away', async () => {
    const bus = await newBus();
    const controller = new AbortController();
    const changes = bus.changes('server', undefined, controller.signal);
    bus.publish([server('SRV-1')]);
    for await (const change of changes) if (change.id === 'SRV-1') break;
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });
});
