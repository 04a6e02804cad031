/** Reads servers: one, one that is waited for, or a page of them. */

import { columnsOf } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { isOrderNumber } from '../../entities/ids.ts';
import {
  lockServerSql,
  Server,
  type ServerStatus,
  SHOWN_COLUMNS,
  type ShownServer,
  STABLE,
} from '../../entities/servers/server.ts';
import type { Context } from '../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../pages.ts';

export { SERVER_STATUSES } from '../../entities/servers/server.ts';

const IS_IT = `order_number = $1 and ($2::text is null or account_id = $2) and status <> 'DELETED'`;
export const FIND_SERVER = `select ${SHOWN_COLUMNS} from server where ${IS_IT}`;
const LOCK_SERVER = lockServerSql(columnsOf(Server), IS_IT);

/** One server of the caller. @throws ApiError not_found, also for those of others and those that are deleted */
export async function findServer({ db, viewer }: Context, orderNumber: string): Promise<ShownServer> {
  const server =
    isOrderNumber('SRV', orderNumber) &&
    (await db.query<ShownServer>(FIND_SERVER, [orderNumber, viewer!.accountId]))[0];
  if (!server) throw new ApiError('not_found');
  return server;
}

/** The same with all that it has, locked with its account: each request sees what the one before it has done. */
export async function lockServer(tx: Transaction, { viewer }: Context, orderNumber: string): Promise<Server> {
  const [server] = isOrderNumber('SRV', orderNumber)
    ? await tx.query<Server>(LOCK_SERVER, [orderNumber, viewer!.accountId])
    : [];
  if (!server) throw new ApiError('not_found');
  return server;
}

export interface Waiting {
  waitFor?: ServerStatus | null | undefined;
  timeoutSeconds: number;
}

/**
 * One server, as soon as it has the status that is waited for or is settled in another; or as it is when the time is
 * over. A server that is deleted meanwhile is not found.
 */
export async function waitForServer(
  context: Context,
  orderNumber: string,
  { waitFor, timeoutSeconds }: Waiting,
): Promise<ShownServer> {
  const present = (server: ShownServer) => server.status === waitFor || STABLE.has(server.status);
  if (!waitFor) return findServer(context, orderNumber);
  const signal = AbortSignal.any([context.signal, context.stopping, AbortSignal.timeout(timeoutSeconds * 1000)]);
  // The subscription comes before the first look, so that no change is missed between the two.
  const changes = context.db.bus.changes('server', context.viewer!.accountId ?? undefined, signal);
  let server = await findServer(context, orderNumber);
  for (let seen = present(server); !seen; seen = present(server)) {
    let change = await changes.next();
    while (!change.done && change.value.id !== null && change.value.id !== orderNumber) change = await changes.next();
    server = await findServer(context, orderNumber);
    if (change.done) break;
  }
  return server;
}

export interface ServerFilter {
  status?: ServerStatus[] | null | undefined;
  region?: string | null | undefined;
  hostname?: string | null | undefined;
  /** `k=v,k2!=v`: all of them hold; a label that is missing is not equal to anything. */
  labelSelector?: string | null | undefined;
}

/** A page of the caller's servers, newest first, without deleted ones; for the operator, of everybody's. */
export async function listServers(
  { db, viewer }: Context,
  request: PageRequest,
  filter: ServerFilter,
): Promise<Page<ShownServer>> {
  const { status = null, region = null, hostname = null, labelSelector = null } = filter;
  const filters = { status, region, hostname, ...(labelSelector && { labelSelector }) };
  const after = afterCursor(request, filters);
  const wanted: string[] = [`status <> 'DELETED'`];
  const parameters: unknown[] = [request.limit + 1];
  const where = (sql: string, value: unknown) => {
    if (value !== null && value !== undefined) wanted.push(sql.replace('?', `$${parameters.push(value)}`));
  };
  where('account_id = ?', viewer!.accountId);
  where('id < ?', after);
  where('status = any(?)', status);
  where('region = ?', region);
  where('hostname = ?', hostname);
  for (const term of labelSelector?.split(',') ?? []) {
    const [, key, operator, value] = /^(.*?)(!?=)(.*)$/s.exec(term)!;
    where(`${operator === '=' ? '' : 'not '}labels @> ?::jsonb`, JSON.stringify({ [key!]: value }));
  }
  const rows = await db.query<ShownServer>(
    `select ${SHOWN_COLUMNS} from server where ${wanted.join(' and ')} order by id desc limit $1`,
    parameters,
  );
  return pageFrom(rows, request, filters);
}
