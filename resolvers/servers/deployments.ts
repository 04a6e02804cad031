/**
 * Deployments on bare-metal hosts, and how the operator overrides a driver that cannot finish one. A host is sold
 * again only after its wiper reported it empty, or an operator declared it so.
 */
import { exists, lock, remove, update } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import type { EventType } from '../../entities/history/event.ts';
import { Deployment, moveDeployment } from '../../entities/servers/deployment.ts';
import { Host, moveHost } from '../../entities/servers/host.ts';
import { FIND_MACHINE_OWNER, LIST_OLDEST_DEPLOYMENTS } from '../../entities/servers/operator-lists.ts';
import { signalTask } from '../../entities/tasks/start.ts';
import { Task } from '../../entities/tasks/task.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';

export { DEPLOYMENT_STATES } from '../../entities/servers/deployment.ts';

/** The states of deployments whose machine no customer has. */
const LEAVING: ReadonlySet<Deployment['state']> = new Set(['WIPING', 'WIPED', 'RETIRED']);

/** The deployments, the longest unchanged first. */
export const listDeployments = ({ db }: Context, limit: number): Promise<Deployment[]> =>
  LIST_OLDEST_DEPLOYMENTS.all(db, [limit]);

/**
 * The operator declares that the disks of a host are empty. If a server is being deleted, this counts as the wiper's report.
 * Then the driver turns the host off, and frees it. A retired host is free at once.
 * @throws ApiError not_found, or validation_failed while a customer has the machine
 */
export const declareWiped = (context: Context, host: string, reason: string): Promise<Deployment> =>
  override(context, host, reason, 'host.wiped', async (tx, found) => {
    const hasTask = await exists(tx, Task, { subject: found.orderNumber });
    if (hasTask && found.state === 'WIPED') return found;
    if (hasTask && found.state === 'WIPING') return (await moveDeployment(tx, found, 'WIPED', { note: reason }))!;
    // The next order compares the users of the controller.
    await update(tx, Host, { name: host }, { bmcUsers: found.bmcUsers });
    await remove(tx, Deployment, { id: found.id });
    return { ...found, state: 'WIPED', note: reason };
  });

/**
 * The operator retires a host: it is off and disconnected, and its disks are not wiped. Its machine counts as gone, so the
 * server becomes deleted, and its addresses are free. The host is not sold until the operator declares it wiped.
 * @throws ApiError not_found, or validation_failed while a customer has the machine
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
    await lock(tx, Host, { name: host });
    const found = await lock(tx, Deployment, { box: host });
    if (!found) throw new ApiError('not_found', 'No machine is on that host.');
    if (!LEAVING.has(found.state) && (await FIND_MACHINE_OWNER.first(tx, [found.orderNumber, found.generation])))
      throw invalid('name', `${found.orderNumber} is on the host, and ${found.state}. Delete that server first.`);
    const after = await act(tx, found);
    if (after === found) return found;
    await moveHost(tx, host, 'DRAINING', actorOf(context));
    await recordByOperator(tx, context, host, {
      type,
      data: { order_number: found.orderNumber, generation: found.generation, state: found.state, reason },
    });
    await signalTask(tx, found.orderNumber);
    return after;
  });
}
