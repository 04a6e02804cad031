/**
 * What subscriptions tell: first the present state, then the state after each change, read anew each time. The bus is
 * listened to before the first read, so nothing falls between the two.
 */
import type { Change, ChangeKind } from '../entities/database/bus.ts';
import { columnsOf } from '../entities/database/table.ts';
import { ApiError } from '../entities/errors.ts';
import type { EventType } from '../entities/history/event.ts';
import { isOrderNumber } from '../entities/ids.ts';
import { TopUp } from '../entities/payments/top-up.ts';
import { SHOWN_COLUMNS, type ShownServer } from '../entities/servers/server.ts';
import { type BalanceView, findBalance } from './accounts/account.ts';
import { onCredentialEnd } from './accounts/auth/credential.ts';
import { accountOf, type Context } from './context.ts';

/** How many subscriptions a credential may have at once. */
const SUBSCRIPTIONS_MAX = 10;
const open = new Map<string, number>();

export interface ServerEvent {
  type: EventType;
  at: Date;
  server: ShownServer;
}

/** The events of one server, or of all of the caller's. @throws ApiError not_found for a server of another account */
export async function watchServers(
  context: Context,
  orderNumber: string | null | undefined,
): Promise<AsyncGenerator<ServerEvent>> {
  const read = (id: string | null) =>
    context.db.query<ShownServer & { type: EventType; at: Date }>(LATEST_EVENTS, [context.viewer!.accountId, id]);
  return watch(context, 'server', orderNumber, 'SRV', async (id) =>
    (await read(id)).map(({ type, at, ...server }) => ({ type, at, server })),
  );
}
const LATEST_EVENTS = `
  select ${SHOWN_COLUMNS}, latest.type, latest.created_at as at
  from server cross join lateral (
    select type, created_at from event where event.account_id = server.account_id and event.subject = server.order_number order by id desc limit 1) latest
  where ($1::text is null or server.account_id = $1) and (server.order_number = $2 or ($2 is null and server.status <> 'DELETED'))
  order by server.id limit 1000`;

/** One top-up, or all of the caller's. @throws ApiError not_found for a top-up of another account */
export async function watchTopUps(
  context: Context,
  orderNumber: string | null | undefined,
): Promise<AsyncGenerator<TopUp>> {
  return watch(context, 'topUp', orderNumber, 'TOP', (id) =>
    context.db.query<TopUp>(TOP_UPS, [context.viewer!.accountId, id]),
  );
}
const TOP_UPS = `
  select ${columnsOf(TopUp)} from top_up
  where ($1::text is null or account_id = $1) and (order_number = $2 or ($2 is null and status in ('PENDING', 'CONFIRMING')))
  order by id limit 1000`;

/** The balance of the caller. */
export async function watchBalance(context: Context): Promise<AsyncGenerator<BalanceView>> {
  accountOf(context);
  return watch(context, 'balance', null, 'TOP', async () => [await findBalance(context)]);
}

async function watch<T>(
  context: Context,
  kind: ChangeKind,
  orderNumber: string | null | undefined,
  prefix: 'SRV' | 'TOP',
  read: (id: string | null) => Promise<T[]>,
): Promise<AsyncGenerator<T>> {
  if (orderNumber && !isOrderNumber(prefix, orderNumber)) throw new ApiError('not_found');
  const ended = new AbortController();
  const signal = AbortSignal.any([context.signal, ended.signal]);
  const changes = context.db.bus.changes(kind, context.viewer?.accountId ?? undefined, signal);
  const leave = enter(context);
  const forget = onCredentialEnd(context.db, context.viewer!, () => end());
  const end = () => {
    forget();
    ended.abort();
    leave();
  };
  try {
    const present = await read(orderNumber ?? null);
    if (orderNumber && !present.length) throw new ApiError('not_found');
    return endable(follow(present, changes, orderNumber ?? null, read, end), end);
  } catch (error) {
    end();
    throw error;
  }
}

async function* follow<T>(
  present: T[],
  changes: AsyncGenerator<Change>,
  orderNumber: string | null,
  read: (id: string | null) => Promise<T[]>,
  end: () => void,
): AsyncGenerator<T> {
  try {
    yield* present;
    for await (const { id } of changes)
      if (!orderNumber || !id || id === orderNumber) yield* await read(orderNumber ?? id);
  } finally {
    end();
  }
}

/** A generator that waits for a change cannot be returned from; so whoever leaves ends the waiting first. */
function endable<T>(generator: AsyncGenerator<T>, end: () => void): AsyncGenerator<T> {
  const leave = generator.return.bind(generator);
  generator.return = (value) => {
    end();
    return leave(value);
  };
  return generator;
}

/** Counts a subscription of a credential. */
function enter({ viewer, signal }: Context): () => void {
  const { credentialId } = viewer!;
  const count = open.get(credentialId) ?? 0;
  if (count >= SUBSCRIPTIONS_MAX)
    throw new ApiError('rate_limited', `A credential can have ${SUBSCRIPTIONS_MAX} subscriptions at once.`);
  open.set(credentialId, count + 1);
  let entered = true;
  const leave = () => {
    if (!entered) return;
    entered = false;
    const left = open.get(credentialId)! - 1;
    if (left) open.set(credentialId, left);
    else open.delete(credentialId);
  };
  signal.addEventListener('abort', leave, { once: true });
  return leave;
}
