/** Reads one server, waits for its status, or reads a page of servers. */
import type { Transaction } from '../../entities/database/transaction.ts';
import { apiErrorOf } from '../../entities/errors.ts';
import { isOrderNumber } from '../../entities/ids.ts';
import {
  FIND_SERVER,
  LIST_NEWEST_SERVERS,
  LIST_NEXT_SERVERS,
  LIST_OLDEST_SERVERS,
  LIST_SERVERS,
  LOCK_OWN_SERVER,
} from '../../entities/servers/find.ts';
import { type Server, type ServerStatus, type ShownServer, STABLE } from '../../entities/servers/server.ts';
import { requireOpen, type WhileSuspended } from '../accounts/account.ts';
import { onCredentialEnd } from '../accounts/auth/credential-end.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';
import { sharedRead } from '../one-read.ts';
import { afterCursor, type Made, type Page, type PageRequest, pageFrom, requireRange } from '../pages.ts';

export { SERVER_STATUSES, STABLE } from '../../entities/servers/server.ts';

/** One server of the caller. @throws ApiError not_found, also for servers of other accounts and for deleted ones */
export async function findServer({ db, viewer }: Context, orderNumber: string): Promise<ShownServer> {
  return found(isOrderNumber('SRV', orderNumber) && (await FIND_SERVER.first(db, [orderNumber, viewer!.accountId])));
}

/** Locks a server of the caller, and its account before it. @throws ApiError as `findServer` and `requireOpen` do */
export async function lockServer(
  tx: Transaction,
  context: Context,
  orderNumber: string,
  allowed?: WhileSuspended,
): Promise<Server> {
  const parameters = [orderNumber, context.viewer!.accountId];
  const server = found(isOrderNumber('SRV', orderNumber) && (await LOCK_OWN_SERVER.first(tx, parameters)));
  await requireOpen(tx, context, allowed);
  return server;
}

export interface Waiting {
  waitFor?: ServerStatus | null | undefined;
  timeoutSeconds: number;
}

/**
 * Waits until a server has the requested status or a stable one, or until the time is over.
 * A caller who waits for the deletion gets the server a last time.
 * @throws ApiError not_found, also if the server is deleted meanwhile; revoked_ or expired_credential if the credential ends
 */
export async function waitForServer(
  context: Context,
  orderNumber: string,
  { waitFor, timeoutSeconds }: Waiting,
): Promise<ShownServer> {
  const present = (server: ShownServer) => server.status === waitFor || STABLE.has(server.status);
  if (!waitFor) return findServer(context, orderNumber);
  const ended = new AbortController();
  const signal = AbortSignal.any([
    ...[context.signal, context.stopping, ended.signal],
    AbortSignal.timeout(timeoutSeconds * 1000),
  ]);
  // Subscribes before the first read, to miss no change between the two.
  const { accountId } = context.viewer!;
  const changes = context.db.bus.changes('server', accountId ?? undefined, signal);
  const view = `waiting ${accountId ?? ''} ${orderNumber}`;
  const credential = onCredentialEnd(context.db, context.viewer!, (how) => how === 'ended' && ended.abort());
  try {
    let server = await findServer(context, orderNumber);
    for (let seen = present(server); !seen; seen = present(server)) {
      let change = await changes.next();
      while (!change.done && change.value.id !== null && change.value.id !== orderNumber) change = await changes.next();
      await requireOpen(context.db, context, 'while suspended');
      const before = server;
      server = await sharedRead(context.db, view, () => findServer(context, orderNumber)).catch((error) => {
        const isGone = apiErrorOf(error)?.code === 'not_found';
        if (isGone && waitFor === 'DELETED') return { ...before, status: waitFor };
        throw error;
      });
      if (change.done) break;
    }
    return server;
  } finally {
    credential.forget();
  }
}

export interface ServerFilter extends Made {
  status?: ServerStatus[] | null | undefined;
  region?: readonly string[] | null | undefined;
  hostname?: string | null | undefined;
  /** `k=v,k2!=v`: all terms must hold. A missing label differs from every value. */
  labelSelector?: string | null | undefined;
}

/** A page of the caller's servers, without deleted ones. The operator sees those of all accounts. */
export async function listServers(
  { db, viewer }: Context,
  request: PageRequest,
  filter: ServerFilter,
): Promise<Page<ShownServer>> {
  requireRange(filter);
  const { status = null, region = null, hostname = null, labelSelector = null } = filter;
  const { createdSince = null, createdUntil = null, sort } = filter;
  const times = { ...(createdSince && { createdSince }), ...(createdUntil && { createdUntil }) };
  const filters = { status, region, hostname, ...(labelSelector && { labelSelector }), ...times };
  const ascending = sort === 'created_at';
  const page = { ...request, ascending };
  const after = afterCursor(page, filters);
  const labels: Record<'=' | '!=', string[]> = { '=': [], '!=': [] };
  for (const term of labelSelector?.split(',') ?? []) {
    const [, key, operator, value] = /^(.*?)(!?=)(.*)$/s.exec(term)!;
    labels[operator as '=' | '!='].push(JSON.stringify({ [key!]: value }));
  }
  const { accountId } = viewer!;
  const most = request.limit + 1;
  const isPlain = accountId !== null && !ascending && Object.values(filters).every((one) => one === null);
  const rows = isPlain
    ? await (after === null
        ? LIST_NEWEST_SERVERS.all(db, [most, accountId])
        : LIST_NEXT_SERVERS.all(db, [most, accountId, after]))
    : await (ascending ? LIST_OLDEST_SERVERS : LIST_SERVERS).all(db, [
        ...[most, accountId, after, status, region, hostname],
        ...[labels['='], labels['!='], createdSince, createdUntil],
      ]);
  // The labels and keys of a server have few KiB at most, so no page is large.
  return pageFrom(rows, page, filters, () => 0);
}
