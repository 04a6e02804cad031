import { describe, expect, it } from 'vitest';
import type { Actor } from '../../entities/history/audit.ts';
import { AuditEntry, SYSTEM } from '../../entities/history/audit.ts';
import { Event } from '../../entities/history/event.ts';
import { type Move, transition } from '../../entities/history/transition.ts';
import { newId, newOrderNumber } from '../../entities/ids.ts';
import { SERVER_LIFECYCLE, SERVER_STATUSES, Server, type ServerStatus } from '../../entities/servers/server.ts';
import { newDatabase } from '../setup/database.ts';

const db = await newDatabase();

const CUSTOMER: Actor = { type: 'api_key', id: 'key_1', name: 'deploy', requestId: 'req_1' };
const { transitions, told } = SERVER_LIFECYCLE;
const allows = (from: ServerStatus, to: ServerStatus) => transitions[from].includes(to);
const PAIRS = SERVER_STATUSES.flatMap((from) => SERVER_STATUSES.map((to) => [from, to] as const));

async function newServer(status: ServerStatus): Promise<Server> {
  const orderNumber = newOrderNumber('SRV');
  const row = { id: newId('srv'), accountId: newId('acct'), orderNumber, kind: 'VPS' as const, status };
  const order = { hostname: 'web', serviceCode: 'vps-1', region: 'ams', os: 'debian-13' };
  await db.source.manager.insert(Server, { ...row, ...order, priceMonthMicros: 6_000_000n, setupFeeMicros: 0n });
  return find(orderNumber);
}
const find = (orderNumber: string) => db.source.manager.findOneByOrFail(Server, { orderNumber });
const moved = (server: Server, to: ServerStatus, move: Move<Server> = { actor: SYSTEM }) =>
  db.transaction((tx) => transition(tx, SERVER_LIFECYCLE, server.orderNumber, to, move));
const writtenOf = async ({ accountId, orderNumber }: Server) => ({
  events: await db.source.manager.findBy(Event, { accountId, subject: orderNumber }),
  audit: await db.source.manager.findBy(AuditEntry, { accountId, resourceId: orderNumber }),
});
const NOTHING = { events: [], audit: [] };

describe('A move that the table allows', () => {
  it.each(PAIRS.filter(([from, to]) => allows(from, to)))(
    'changes the state and writes one event and one audit entry: %s to %s',
    async (from, to) => {
      const server = await newServer(from);
      expect(await moved(server, to)).toMatchObject({ id: server.id, status: to, previousState: from });
      expect(await find(server.orderNumber)).toMatchObject({ status: to });
      const written = await writtenOf(server);
      expect(written.events).toMatchObject([{ type: told!.events[to], data: { status: to } }]);
      expect(written.audit).toMatchObject([{ action: told!.events[to], resourceType: 'server', actorType: 'system' }]);
    },
  );

  it('sets other columns of any type with the state, and returns the changed row', async () => {
    const server = await newServer('PENDING');
    const set: Partial<Server> = {
      hostname: 'db',
      ipv4: '192.0.2.7',
      ipv6: '2001:db8::7',
      reverseDns: [{ ip: '192.0.2.7', ptr: "o'db.example" }],
      labels: { stage: 'test' },
      sshPublicKeys: ['ssh-ed25519 AAAA', 'a "quoted", key'],
      rootPassword: Buffer.from('sealed'),
      autoRenew: false,
      generation: 2,
      priceMonthMicros: 2n ** 60n,
      paidUntil: new Date('2026-02-01T00:00:00.123Z'),
      userData: null,
    };
    const row = await moved(server, 'PROVISIONING', { actor: SYSTEM, set });
    const stored = await find(server.orderNumber);
    expect(stored).toMatchObject({ ...set, status: 'PROVISIONING' });
    expect(row).toMatchObject(stored);
    expect(stored.updatedAt.getTime()).toBeGreaterThanOrEqual(server.updatedAt.getTime());
  });

  it('names its actor, its request and further data', async () => {
    const server = await newServer('RUNNING');
    await moved(server, 'STOPPING', { actor: CUSTOMER, data: { operation: 'power' } });
    const written = await writtenOf(server);
    expect(written.events).toMatchObject([{ data: { status: 'STOPPING', operation: 'power' } }]);
    expect(written.audit).toMatchObject([
      { actorType: 'api_key', actorId: 'key_1', actorName: 'deploy', requestId: 'req_1' },
    ]);
  });

  it('reaches the bus after the commit, and leaves nothing after a rollback', async () => {
    const [server, undone] = [await newServer('RUNNING'), await newServer('RUNNING')];
    const heard: unknown[] = [];
    const stop = db.bus.listen((change) => heard.push(change));
    await moved(server, 'STOPPING');
    const failing = db.transaction(async (tx) => {
      await transition(tx, SERVER_LIFECYCLE, undone.orderNumber, 'STOPPING', { actor: SYSTEM });
      throw new Error('after the move');
    });
    await expect(failing).rejects.toThrow('after the move');
    stop();
    expect(heard).toEqual([{ kind: 'server', accountId: server.accountId, id: server.orderNumber }]);
    expect(await find(undone.orderNumber)).toEqual(undone);
    expect(await writtenOf(undone)).toEqual(NOTHING);
  });
});

describe('A move that the table forbids', () => {
  it.each(SERVER_STATUSES)('changes and writes nothing, from %s to any state', async (from) => {
    const server = await newServer(from);
    for (const to of SERVER_STATUSES.filter((status) => !allows(from, status)))
      expect(await moved(server, to, { actor: CUSTOMER, set: { hostname: 'changed' } })).toBeUndefined();
    expect(await find(server.orderNumber)).toEqual(server);
    expect(await writtenOf(server)).toEqual(NOTHING);
  });

  it('does not reach the bus, and a move of an unknown server does not either', async () => {
    const server = await newServer('DELETED');
    const heard: unknown[] = [];
    const stop = db.bus.listen((change) => heard.push(change));
    expect(await moved(server, 'RUNNING')).toBeUndefined();
    expect(await moved({ ...server, orderNumber: newOrderNumber('SRV') }, 'RUNNING')).toBeUndefined();
    stop();
    expect(heard).toEqual([]);
  });
});

describe('Moves at the same time', () => {
  it('have one winner, where each forbids the others', async () => {
    for (let round = 0; round < 10; round++) {
      const server = await newServer('RUNNING');
      const targets = ['STOPPING', 'REBOOTING', 'REBUILDING', 'SUSPENDED'] as const;
      const results = await Promise.all([...targets, ...targets].map((to) => moved(server, to)));
      const winners = results.filter((row) => row !== undefined);
      const { status } = await find(server.orderNumber);
      // From SUSPENDED nothing leads to the others, and from the others nothing to them: exactly one has moved.
      expect(winners).toMatchObject([{ status, previousState: 'RUNNING' }]);
      const written = await writtenOf(server);
      expect([written.events.length, written.audit.length]).toEqual([1, 1]);
    }
  });

  it('judge by the state that the first has left behind, when the second had to wait', async () => {
    for (const [second, allowed] of [
      ['RUNNING', true],
      ['SUSPENDED', false],
    ] as const) {
      const server = await newServer('PENDING');
      const { promise: go, resolve: letGo } = Promise.withResolvers<void>();
      const { promise: locked, resolve: hasLocked } = Promise.withResolvers<void>();
      const first = db.transaction(async (tx) => {
        await transition(tx, SERVER_LIFECYCLE, server.orderNumber, 'PROVISIONING', { actor: SYSTEM });
        hasLocked();
        await go;
      });
      await locked;
      const waiting = moved(server, second);
      await untilSomebodyWaits();
      letGo();
      await first;
      if (allowed) expect(await waiting).toMatchObject({ status: second, previousState: 'PROVISIONING' });
      else expect(await waiting).toBeUndefined();
    }
  });
});

async function untilSomebodyWaits() {
  for (;;) {
    const waiting = await db.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    if (waiting.length) return;
  }
}

describe('The table of server states', () => {
  it('leads from every state but itself and DELETED to DELETING, and from there to DELETED, where all ends', () => {
    for (const from of SERVER_STATUSES) expect(allows(from, 'DELETING')).toBe(!['DELETING', 'DELETED'].includes(from));
    expect(transitions.DELETING).toEqual(['DELETED']);
    expect(transitions.DELETED).toEqual([]);
  });

  it('has no state that cannot be reached, and none that leads to itself', () => {
    const reached = new Set<ServerStatus>(['PENDING']);
    for (const from of reached) for (const to of transitions[from]) reached.add(to);
    expect([...reached].sort()).toEqual([...SERVER_STATUSES].sort());
    for (const status of SERVER_STATUSES) expect(allows(status, status)).toBe(false);
  });
});
