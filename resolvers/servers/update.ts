/** Changes a server. The resolver writes its fields; a worker carries out the operation, of which there is at most one. */
import { databaseTime } from '../../entities/database/clock.ts';
import { type ChangedColumns, update as updateRow } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { transition } from '../../entities/history/transition.ts';
import { newId } from '../../entities/ids.ts';
import {
  ROOT_PASSWORD,
  SERVER_LIFECYCLE,
  Server,
  type ServerChange,
  type ServerStatus,
  STABLE,
  USER_DATA,
} from '../../entities/servers/server.ts';
import { requireRight } from '../accounts/auth/scope.ts';
import { refuseRenewals } from '../accounts/auth/spend-limit.ts';
import { actorOf, type Context } from '../context.ts';
import { lockServer } from './find.ts';
import { type Operation, type OperationName, operationOf, statusAfter } from './operation.ts';
import { planRebuild } from './rebuild.ts';
import { findTier, planResize } from './resize.ts';
import { ownReverseDns } from './reverse-dns.ts';

export interface ServerUpdate extends Operation {
  hostname?: string | null | undefined;
  /** Replaces all labels, as `reverseDns` replaces all names. */
  labels?: Record<string, string> | null | undefined;
  autoRenew?: boolean | null | undefined;
  deleteProtection?: boolean | null | undefined;
  reverseDns?: Server['reverseDns'] | null | undefined;
}

export interface UpdatedServer {
  server: Server;
  /** The difference of a resize for the rest of the month. */
  chargedMicros: bigint;
  /** The password of a rebuild: the given one, or a generated one without SSH keys. This answer alone shows it. */
  rootPassword: string | null;
}

/**
 * Applies the whole update, or nothing. An operator needs the right to move money for a resize and for automatic renewal.
 * @throws ApiError not_found, or the reason of a refusal
 */
export const updateServer = (context: Context, orderNumber: string, update: ServerUpdate): Promise<UpdatedServer> =>
  context.db.transaction((tx) => changeServer(tx, context, orderNumber, update));

/** Does the same within a transaction. */
export async function changeServer(
  tx: Transaction,
  context: Context,
  orderNumber: string,
  update: ServerUpdate,
): Promise<UpdatedServer> {
  const operation = operationOf(update);
  // Both spend the money of the customer.
  if (operation === 'resize' || update.autoRenew) requireRight(context.viewer, 'support', 'billing');
  const server = await lockServer(tx, context, orderNumber);
  const set = { ...fieldsOf(server, update), ...(operation === 'stop' && staysOff(server)) };
  if (update.autoRenew && (!server.autoRenew || server.status === 'SUSPENDED')) refuseRenewals(context, 'begin');
  // This runs under the lock of the server, so it sees a suspension that commits at this moment.
  if (update.autoRenew && server.status === 'SUSPENDED')
    await context.provisioning.servers.retrySuspended(tx, server.accountId);
  const begun = operation && (await begin(tx, context, server, operation, update));
  if (!begun) {
    // The machine may differ from its server, such as one that shut itself down.
    if (operation) await context.provisioning.servers.reconcile(tx, server);
    return { server: await write(tx, context, server, set), chargedMicros: 0n, rootPassword: null };
  }
  const { rootPassword = null, userData = null, chargedMicros = 0n } = begun;
  const moved = await transition(tx, SERVER_LIFECYCLE, orderNumber, begun.status, {
    actor: actorOf(context),
    data: { operation, changed: Object.keys(set) },
    set: {
      ...set,
      change: begun.change,
      failureCode: null,
      failureMessage: null,
      rootPassword: rootPassword === null ? null : ROOT_PASSWORD.seal(context.vault, rootPassword, orderNumber),
      userData: userData === null ? null : USER_DATA.seal(context.vault, userData, orderNumber),
    },
  });
  if (!moved) throw new Error(`${orderNumber} is ${server.status}, and could not become ${begun.status}.`);
  await context.provisioning.servers.reconcile(tx, moved);
  return { server: moved, chargedMicros, rootPassword };
}

/** Keeps a server off that the end of its change or of a suspension would turn on. @returns whether it would */
export async function keepOff(tx: Transaction, context: Context, server: Server): Promise<boolean> {
  const { status, change } = server;
  const leadsOff = status === 'SUSPENDED' ? change?.from === 'STOPPED' : status === 'STOPPING' || status === 'RESIZING';
  const comesOn = change && !change.endsOff && !leadsOff;
  const set = { ...staysOff(server), ...(comesOn && { change: { ...change, endsOff: true as const } }) };
  if (comesOn) await context.provisioning.servers.reconcile(tx, server);
  return (await write(tx, context, server, set)) !== server;
}

/** The columns of a server that an explicit stop changes, so that no end of a suspension turns it on. */
const staysOff = ({ keptOff, suspendedFrom }: Server): ChangedColumns<Server> => ({
  ...(keptOff && { keptOff: false }),
  ...(suspendedFrom === 'RUNNING' && { suspendedFrom: 'STOPPED' }),
});

/** The given fields that differ. @throws ApiError validation_failed or server_busy */
function fieldsOf(server: Server, update: ServerUpdate): ChangedColumns<Server> {
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
  const set: ChangedColumns<Server> = Object.fromEntries(changed);
  // The machine in the making has the ordered name.
  if (set.hostname && !STABLE.has(server.status)) throw new ApiError('server_busy');
  return set;
}

async function write(tx: Transaction, context: Context, server: Server, set: ChangedColumns<Server>): Promise<Server> {
  if (!Object.keys(set).length) return server;
  const { id, accountId, orderNumber } = server;
  const updatedAt = await databaseTime(tx);
  await updateRow(tx, Server, { id }, { ...set, updatedAt });
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
  userData?: string | null;
  chargedMicros?: bigint;
}

/**
 * Plans an operation; undefined where the server is in the requested state.
 * @throws ApiError server_busy, or the reason of a refusal
 */
async function begin(
  tx: Transaction,
  context: Context,
  server: Server,
  operation: OperationName,
  asked: ServerUpdate,
): Promise<Begun | undefined> {
  const rebuild = operation === 'rebuild' ? await planRebuild(tx, server, asked) : undefined;
  const tier = operation === 'resize' ? await findTier(tx, asked.serviceCode!) : undefined;
  const status = statusAfter(server.status, operation);
  // Otherwise, one change after the other would keep an unpaid machine on.
  if (server.paidUntil! <= (await databaseTime(tx)))
    throw new ApiError('server_busy', 'The paid time has ended. The service renews or suspends the server now.');
  if (status === server.status) return undefined;
  const from = server.status as ServerChange['from'];
  const id = newId('chg');
  if (rebuild) return { ...rebuild, status, change: { id, from, ...rebuild.change } };
  if (!tier) return { status, change: { id, from, operation: operation as 'start' | 'stop' | 'reboot' | 'reset' } };
  const renewing = { ...server, autoRenew: asked.autoRenew ?? server.autoRenew };
  const change = await planResize(tx, context, renewing, tier, { id, serviceCode: asked.serviceCode! });
  return { status, change, chargedMicros: BigInt(change.heldMicros) };
}
