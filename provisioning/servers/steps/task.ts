/** The task of a server: its process, its lane and its deadlines. */
import type { Server } from '../../../entities/servers/server.ts';
import type { NewTask } from '../../../entities/tasks/start.ts';

export const SERVER_PROCESS = 'server';
export const SERVER_LANE = 'servers';

/** Failed calls of a driver at one step before the worker gives the step up. */
export const ATTEMPTS_MAX = 3;

type Ordered = Pick<Server, 'kind' | 'orderNumber' | 'accountId'>;

/** Seconds that an order or a change can take, by the kind of machine. */
const DEADLINE_SECONDS: Record<Server['kind'], number> = { VPS: 30 * 60, DEDICATED: 8 * 3600 };

/** The task that continues at a step of a server. Default: it carries out the order. */
export const serverTask = ({ kind, orderNumber, accountId }: Ordered, step = 'claim'): NewTask => ({
  lane: SERVER_LANE,
  process: SERVER_PROCESS,
  subject: orderNumber,
  accountId,
  step,
  deadlineSeconds: DEADLINE_SECONDS[kind],
});

/** The task that removes the machines of a DELETING server. It has no deadline. */
export const destroyTask = ({ orderNumber, accountId }: Omit<Ordered, 'kind'>): NewTask => ({
  lane: SERVER_LANE,
  process: SERVER_PROCESS,
  subject: orderNumber,
  accountId,
  step: 'destroy',
});
