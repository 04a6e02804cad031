/**
 * What is on bare-metal hosts, and the operator's word where the driver does not come to its end with one. A host is given to the next
 * customer when its own wiper, or the operator by name and reason, has said that it is empty; never otherwise.
 */

import { columnsOf } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import type { EventType } from '../../entities/history/event.ts';
import { record } from '../../entities/history/record.ts';
import { Deployment, moveDeployment } from '../../entities/servers/deployment.ts';
import { moveHost } from '../../entities/servers/host.ts';
import { signalTask } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../errors.ts';

export { DEPLOYMENT_STATES } from '../../entities/servers/deployment.ts';

const SELECT = `select ${columnsOf(Deployment)} from deployment`;

/** Of each host that is not free, the longest unchanged first. */
export const listDeployments = ({ db }: Context, limit: number): Promise<Deployment[]> =>
  db.query(`${SELECT} order by updated_at, id limit $1`, [limit]);

/**
 * The disk of a host is empty, for it was wiped, replaced or destroyed by hand. Where a server is still to be deleted, it
 * is as if the wiper had said so: the host is turned off, and free. One that was retired is free at once.
 * @throws ApiError not_found, or validation_failed while a customer has it
 */
export const declareWiped = (context: Context, host: string, reason: string): Promise<Deployment> =>
  override(context, host, reason, 'host.wiped', async (tx, found) => {
    const [task] = await tx.query('select 1 from task where subject = $1', [found.orderNumber]);
    if (task && found.state === 'WIPED') return found;
    if (task && found.state === 'WIPING') return (await moveDeployment(tx, found, 'WIPED', { note: reason }))!;
    await tx.query('delete from deployment where id = $1', [found.id]);
    return { ...found, state: 'WIPED', note: reason };
  });

/**
 * A host is out of service, off and not connected, with whatever is on its disk. What was to be deleted with it counts as
 * gone: a server becomes deleted, and its addresses are free. The host is given to nobody until it is declared wiped.
 * @throws ApiError not_found, or validation_failed while a customer has it
 */
export const retireHost = (context: Context, host: string, reason: string): Promise<Deployment> =>
  override(context, host, reason, 'host.retired', async (tx, found) => {
    if (found.state === 'RETIRED') return found;
    return (await moveDeployment(tx, found, 'RETIRED', { run: found.run + 1, seed: null, cycle: null, note: reason }))!;
  });

async function override(
  context: Context,
  host: string,
  reason: string,
  type: EventType & `host.${string}`,
  act: (tx: Transaction, found: Deployment) => Promise<Deployment>,
): Promise<Deployment> {
  return context.db.transaction(async (tx) => {
    await tx.query('select 1 from host where name = $1 for update', [host]);
    const [found] = await tx.query<Deployment>(`${SELECT} where box = $1 for update`, [host]);
    if (!found) throw new ApiError('not_found', 'Nothing is on that host.');
    if (!LEFT.has(found.state) && (await isHad(tx, found)))
      throw invalid('name', `${found.orderNumber} is on it, and ${found.state}. Delete that server first.`);
    const after = await act(tx, found);
    if (after === found) return found;
    await moveHost(tx, host, 'DRAINING', actorOf(context));
    await record(tx, OPERATOR_ACCOUNT, host, {
      type,
      actor: actorOf(context),
      data: { order_number: found.orderNumber, generation: found.generation, state: found.state, reason },
    });
    await signalTask(tx, found.orderNumber);
    return after;
  });
}

/** The states of bare-metal hosts that no customer has any more. */
const LEFT: ReadonlySet<Deployment['state']> = new Set(['WIPING', 'WIPED', 'RETIRED']);

/** Whether that very machine is one of a server that is not gone. */
async function isHad(db: Queryable, { orderNumber, generation }: Deployment): Promise<boolean> {
  const [had] = await db.query(
    `select 1 from server where order_number = $1 and generation = $2 and status <> 'DELETED'
      and (status <> 'FAILED' or ipv4 is not null)`,
    [orderNumber, generation],
  );
  return had !== undefined;
}
