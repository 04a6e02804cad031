/**
 * Subscriptions: first the present state, then the state after each change. The resolver listens to the bus before its
 * first read, so no change is lost between the two.
 */
import { randomUUID } from 'node:crypto';
import type { BalanceView } from '../entities/accounts/account.ts';
import type { Change, ChangeKind } from '../entities/database/bus.ts';
import { databaseTime } from '../entities/database/clock.ts';
import { ApiError } from '../entities/errors.ts';
import {
  type EventType,
  FIND_OPERATOR_EVENT,
  LATEST_OPERATOR_EVENT,
  OPERATOR_EVENTS_SINCE,
  type OperatorEvent,
} from '../entities/history/event.ts';
import { idBounds, isOrderNumber } from '../entities/ids.ts';
import { type TopUp, WATCH_TOP_UPS } from '../entities/payments/top-up.ts';
import type { ShownServer } from '../entities/servers/server.ts';
import { FIND_LATEST_EVENTS } from '../entities/servers/server-event.ts';
import { findBalance } from './accounts/account.ts';
import { onCredentialEnd } from './accounts/auth/credential-end.ts';
import { Ceiling } from './ceiling.ts';
import { accountOf, type Context, countedAs } from './context.ts';
import { unavailable } from './errors.ts';
import { sharedRead } from './one-read.ts';

const ceilingOf = (who: string, max: number) =>
  new Ceiling(max, `${who} can have ${max} subscriptions at once. End one first.`);
const OF_CREDENTIAL = ceilingOf('A credential', 10);
/** An operator may have the console open in many windows. */
const OF_OPERATOR = ceilingOf('An operator', 100);
/** An account can have many credentials. */
const OF_ACCOUNT = ceilingOf('An account', 50);

export interface ServerEvent {
  type: EventType;
  at: Date;
  server: ShownServer;
}

/** Watches one server, or all servers of the caller. @throws ApiError not_found for a server of another account */
export async function watchServers(
  context: Context,
  orderNumber: string | null | undefined,
): Promise<AsyncGenerator<ServerEvent>> {
  return watch(context, 'server', orderNumber, 'SRV', async (id) => {
    const latest = await FIND_LATEST_EVENTS.all(context.db, [context.viewer!.accountId, id]);
    return latest.map(({ type, at, ...server }) => ({ type, at, server }));
  });
}

/** Watches one top-up, or all open ones of the caller. @throws ApiError not_found for a top-up of another account */
export async function watchTopUps(
  context: Context,
  orderNumber: string | null | undefined,
): Promise<AsyncGenerator<TopUp>> {
  const { accountId } = context.viewer!;
  return watch(context, 'topUp', orderNumber, 'TOP', (id) => WATCH_TOP_UPS.all(context.db, [accountId, id]));
}

/** A commit is told within this time after its transaction began. Events have the time of that beginning. */
const COMMIT_MS = 60_000;

/** Watches the events of the operator, from the newest one on. After a lost connection, an event may come again. */
export async function watchOperatorEvents(context: Context): Promise<AsyncGenerator<OperatorEvent>> {
  let since = await databaseTime(context.db);
  let isFirst = true;
  const read = (id: string | null) => (id ? FIND_OPERATOR_EVENT.all(context.db, [id]) : present());
  const present = () => {
    if (isFirst) {
      isFirst = false;
      return LATEST_OPERATOR_EVENT.all(context.db);
    }
    const from = new Date(since.getTime() - COMMIT_MS);
    return OPERATOR_EVENTS_SINCE.all(context.db, [from, idBounds('evt', from, null)[0]]);
  };
  const note = ({ createdAt }: OperatorEvent) => {
    if (createdAt > since) since = createdAt;
  };
  return watch(context, 'operatorEvent', null, 'TOP', read, { view: randomUUID(), note });
}

/** Watches the balance of the caller. */
export async function watchBalance(context: Context): Promise<AsyncGenerator<BalanceView>> {
  accountOf(context);
  return watch(context, 'balance', null, 'TOP', async () => [await findBalance(context)]);
}

/** @param view tells reads without an id apart that callers must not share */
async function watch<T>(
  context: Context,
  kind: ChangeKind,
  orderNumber: string | null | undefined,
  prefix: 'SRV' | 'TOP',
  read: (id: string | null) => Promise<T[]>,
  { view = '', note = () => {} }: { view?: string; note?: (one: T) => void } = {},
): Promise<AsyncGenerator<T>> {
  if (orderNumber && !isOrderNumber(prefix, orderNumber)) throw new ApiError('not_found');
  const leave = enter(context);
  const ended = new AbortController();
  const { accountId } = context.viewer!;
  const changes = context.db.bus.changes(kind, accountId ?? undefined, ended.signal);
  const readShared = (id: string | null) =>
    sharedRead(context.db, `${kind} ${accountId ?? ''} ${id ?? view}`, () => read(id));
  let isLost = false;
  const credential = onCredentialEnd(context.db, context.viewer!, (how) => {
    isLost ||= how === 'unknown';
    end();
  });
  const end = () => {
    context.signal.removeEventListener('abort', end);
    credential.forget();
    ended.abort();
    leave();
  };
  context.signal.addEventListener('abort', end);
  if (context.signal.aborted) end();
  try {
    await credential.checked;
    // The caller subscribes again, and learns what has changed.
    if (ended.signal.aborted) throw unavailable();
    const present = await readShared(orderNumber ?? null);
    if (orderNumber && !present.length) throw new ApiError('not_found');
    const watcher = { changes, orderNumber: orderNumber ?? null, read: readShared, note, end, isLost: () => isLost };
    return endable(follow(present, watcher), end);
  } catch (error) {
    end();
    throw error;
  }
}

interface Watcher<T> {
  changes: AsyncGenerator<Change>;
  orderNumber: string | null;
  read(id: string | null): Promise<T[]>;
  /** Learns of each row before the caller. */
  note(one: T): void;
  end(): void;
  /** Whether a change of the credential may be lost. */
  isLost(): boolean;
}

/**
 * Yields the present state, and then each change. Loops cost less than `yield*`.
 * @throws ApiError unavailable if a change of the credential may be lost: clients subscribe again after a fault
 */
async function* follow<T>(present: T[], watcher: Watcher<T>): AsyncGenerator<T> {
  const { changes, orderNumber, read, note, end, isLost } = watcher;
  try {
    for (const one of present) {
      note(one);
      yield one;
    }
    for await (const { id } of changes)
      if (!orderNumber || !id || id === orderNumber)
        for (const one of await read(orderNumber ?? id)) {
          note(one);
          yield one;
        }
  } finally {
    end();
  }
  if (isLost()) throw unavailable();
}

/** Ends the wait for a change when the caller leaves: a waiting generator cannot return. */
function endable<T>(generator: AsyncGenerator<T>, end: () => void): AsyncGenerator<T> {
  const leave = generator.return.bind(generator);
  generator.return = (value) => {
    end();
    return leave(value);
  };
  return generator;
}

/** Counts a subscription. @returns a function that ends the count @throws ApiError rate_limited */
function enter({ viewer }: Context): () => void {
  const { accountId } = viewer!;
  const leaveCredential = (accountId ? OF_CREDENTIAL : OF_OPERATOR).enter(countedAs(viewer!));
  const leave = () => {
    leaveCredential();
    leaveAccount();
  };
  let leaveAccount = () => {};
  try {
    if (accountId) leaveAccount = OF_ACCOUNT.enter(accountId);
  } catch (error) {
    leave();
    throw error;
  }
  return leave;
}
