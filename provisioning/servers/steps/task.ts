/** The task of a server: its process, its lane, and how long what it is at may take. */
import type { Server } from '../../../entities/servers/server.ts';
import type { NewTask } from '../../tasks/tasks.ts';

export const SERVER_PROCESS = 'server';
export const SERVER_LANE = 'servers';

/** After this many failed calls of a driver at one step, that is given up. */
export const ATTEMPTS_MAX = 3;

type Ordered = Pick<Server, 'kind' | 'orderNumber' | 'accountId'>;

/** How long an order or a change may take before it is given up, by the kind of machine. */
const DEADLINE_SECONDS: Record<Server['kind'], number> = { VPS: 30 * 60, DEDICATED: 8 * 3600 };

/** The task that goes on with a server at a step; by default it makes an ordered one run. */
export const serverTask = ({ kind, orderNumber, accountId }: Ordered, step = 'claim'): NewTask => ({
  lane: SERVER_LANE,
  process: SERVER_PROCESS,
  subject: orderNumber,
  accountId,
  step,
  deadlineSeconds: DEADLINE_SECONDS[kind],
});

/** The task that removes the machine of a server that is DELETING, however long it takes. */
export const destroyTask = ({ orderNumber, accountId }: Omit<Ordered, 'kind'>): NewTask => ({
  lane: SERVER_LANE,
  process: SERVER_PROCESS,
  subject: orderNumber,
  accountId,
  step: 'destroy',
});
