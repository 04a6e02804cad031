/** The task of a server: its process, its lane and its deadlines. */
import type { Server } from '../../entities/servers/server.ts';
import type { NewTask } from '../../entities/tasks/start.ts';
import { backoffSeconds } from '../tasks/tasks.ts';

export const SERVER_PROCESS = 'server';
export const SERVER_LANE = 'servers';
/** The steps of every task of a server. The table decides what they do. An order or a change that fails continues with the second. */
export const [RECONCILE, UNDO] = ['reconcile', 'undo'];

/** Failed calls of a driver at one step before the worker gives the step up. */
export const ATTEMPTS_MAX = 3;

/** The columns of a server that its task needs. The host is null before it is claimed, and where the engine has none. */
export type Tasked = Pick<Server, 'kind' | 'orderNumber' | 'accountId' | 'host'>;

/** The other side that the task of a server calls: its host, or the engine of its kind. */
export const partyOf = ({ host, kind }: Pick<Server, 'kind' | 'host'>): string => host ?? kind;

/** The longest pause between two attempts, in seconds. */
const PAUSE_SECONDS_MAX = 120;
/** Seconds until the next attempt after so many. Attempts that failed together spread out. */
export const pauseSeconds = (pollSeconds: number, attempt: number): number =>
  backoffSeconds(attempt, { first: 5 * pollSeconds, most: PAUSE_SECONDS_MAX });

/** Seconds between two looks at an open circuit breaker. */
export const BREAKER_OPEN_SECONDS = 30;

/** Seconds that an order or a change can take, by the kind of machine. */
const DEADLINE_SECONDS: Record<Server['kind'], number> = { VPS: 30 * 60, DEDICATED: 8 * 3600 };

/** The task that brings the machine of a server to its wanted state in time. */
export const serverTask = (server: Tasked): NewTask => ({
  ...destroyTask(server),
  deadlineSeconds: DEADLINE_SECONDS[server.kind],
});

/** The task that moves the machine of a server to another host. It waits for the end of any outage. */
export const moveTask = (server: Tasked): NewTask => destroyTask(server);

/** The task that removes the machines of a DELETING server. It has no deadline. */
export const destroyTask = (server: Tasked): NewTask => ({
  lane: SERVER_LANE,
  process: SERVER_PROCESS,
  subject: server.orderNumber,
  accountId: server.accountId,
  party: partyOf(server),
  step: RECONCILE,
});
