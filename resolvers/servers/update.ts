/** Changes a server: fields at once, and at most one operation, which provisioning carries out. */
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { transition } from '../../entities/history/transition.ts';
import { newId } from '../../entities/ids.ts';
import {
  SERVER_LIFECYCLE,
  Server,
  type ServerChange,
  type ServerStatus,
  STABLE,
} from '../../entities/servers/server.ts';
import { passwordContext } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { lockServer } from './find.ts';
import { type Operation, type OperationName, operationOf, statusAfter } from './operation.ts';
import { planRebuild } from './rebuild.ts';
import { findTier, planResize } from './resize.ts';
import { ownReverseDns } from './reverse-dns.ts';

export interface ServerUpdate extends Operation {
  hostname?: string | null | undefined;
  /** These and the names of addresses replace all that there were. */
  labels?: Record<string, string> | null | undefined;
  autoRenew?: boolean | null | undefined;
  deleteProtection?: boolean | null | undefined;
  reverseDns?: Server['reverseDns'] | null | undefined;
}

export interface UpdatedServer {
  server: Server;
  /** The difference for the rest of the month, of a resize. */
  chargedMicros: bigint;
  /** Of a rebuild, if one was given or had to be made; shown once. */
  rootPassword: string | null;
}

/** The whole of it or nothing. @throws ApiError not_found, or what the operation or a field is refused for */
export async function updateServer(
  context: Context,
  orderNumber: string,
  update: ServerUpdate,
): Promise<UpdatedServer> {
  const operation = operationOf(update);
  return context.db.transaction(async (tx) => {
    const server = await lockServer(tx, context, orderNumber);
    const set = fieldsOf(server, update);
    // Under the lock of the server, so that one that is being suspended at this moment is not missed.
    if (update.autoRenew && server.status === 'SUSPENDED')
      await context.provisioning.servers.retrySuspended(tx, server.accountId);
    const begun = operation && (await begin(tx, context, server, operation, update));
    if (!begun) return { server: await write(tx, context, server, set), chargedMicros: 0n, rootPassword: null };
    const { rootPassword = null, chargedMicros = 0n } = begun;
    const moved = await transition(tx, SERVER_LIFECYCLE, orderNumber, begun.status, {
      actor: actorOf(context),
      data: { operation, changed: Object.keys(set) },
      set: {
        ...set,
        change: begun.change,
        failureCode: null,
        failureMessage: null,
        rootPassword: rootPassword === null ? null : context.vault.seal(rootPassword, passwordContext(orderNumber)),
      },
    });
    if (!moved) throw new Error(`${orderNumber} is ${server.status}, and could not become ${begun.status}.`);
    await context.provisioning.servers.change(tx, moved);
    return { server: moved, chargedMicros, rootPassword };
  });
}

/** The fields that are given and differ. @throws ApiError validation_failed or server_busy */
function fieldsOf(server: Server, update: ServerUpdate): Partial<Server> {
  const { hostname, labels, autoRenew, deleteProtection, reverseDns } = update;
  const given: Partial<Server> = {
    ...(hostname != null && { hostname }),
    ...(labels && { labels }),
    ...(autoRenew != null && { autoRenew }),
    ...(deleteProtection != null && { deleteProtection }),
    ...(reverseDns && { reverseDns: ownReverseDns(server, reverseDns) }),
  };
  const changed = Object.entries(given).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(server[name as keyof Server]),
  );
  const set: Partial<Server> = Object.fromEntries(changed);
  // A machine that is being made has the name that it was asked for with.
  if (set.hostname && !STABLE.has(server.status)) throw new ApiError('server_busy');
  return set;
}

async function write(tx: Transaction, context: Context, server: Server, set: Partial<Server>): Promise<Server> {
  if (!Object.keys(set).length) return server;
  const { id, accountId, orderNumber } = server;
  const updatedAt = new Date();
  await tx.manager.update(Server, { id }, { ...set, updatedAt } as object);
  await record(tx, accountId, orderNumber, {
    type: 'server.updated',
    actor: actorOf(context),
    data: { status: server.status, changed: Object.keys(set) },
  });
  tx.changed({ kind: 'server', accountId, id: orderNumber });
  return { ...server, ...set, updatedAt };
}

interface Begun {
  status: ServerStatus;
  change: ServerChange;
  rootPassword?: string | null;
  chargedMicros?: bigint;
}

/** What the operation begins with; undefined where the server is already what it should be. */
async function begin(
  tx: Transaction,
  context: Context,
  server: Server,
  operation: OperationName,
  asked: Operation,
): Promise<Begun | undefined> {
  const rebuild = operation === 'rebuild' ? await planRebuild(tx, server, asked) : undefined;
  const tier = operation === 'resize' ? await findTier(tx, asked.serviceCode!) : undefined;
  const status = statusAfter(server.status, operation);
  if (status === server.status) return undefined;
  const from = server.status as ServerChange['from'];
  const id = newId('chg');
  if (rebuild) return { status, change: { id, from, ...rebuild.change }, rootPassword: rebuild.rootPassword };
  if (!tier) return { status, change: { id, from, operation: operation as 'start' | 'stop' | 'reboot' | 'reset' } };
  const change = await planResize(tx, context, server, tier, { id, serviceCode: asked.serviceCode! });
  return { status, change, chargedMicros: BigInt(change.heldMicros) };
}
