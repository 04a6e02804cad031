/**
 * Leads a machine to its wanted state. It observes the machine, looks up the next step in the table, and carries it out. A
 * killed worker loses nothing, because the next one observes the machine again.
 */

import { CHANGING } from '../../../entities/servers/server.ts';
import { hop, type LeasedTask, nap, type Outcome } from '../../tasks/tasks.ts';
import { undoChange } from '../billing/change.ts';
import { machineTime } from '../billing/unproven.ts';
import { DriverError, type MachineSpec, type Observation } from '../drivers/driver.ts';
import { move } from '../move.ts';
import { requireSeen } from '../placement/allocate.ts';
import { reserveCapacity } from '../placement/capacity.ts';
import { keyOf } from '../placement/spec.ts';
import { ATTEMPTS_MAX, BREAKER_OPEN_SECONDS, pauseSeconds, RECONCILE, UNDO } from '../task.ts';
import { fail, isPermanent, undeliverable } from './outcome.ts';
import { remake } from './remake.ts';
import { remove } from './remove.ts';
import { settle } from './settle.ts';
import type { ServerStep, Work } from './step.ts';
import { nextStep, type Step } from './table.ts';
import { isOutage, noteTrouble } from './trouble.ts';
import { changedBy, changeOf, type Wanted, wantedOf } from './wanted.ts';

/** The calls that bring a machine nearer to its wanted state. */
type Act = Extract<Step, 'off' | 'on' | 'restart' | 'reset' | 'resize' | 'rebuild' | 'move'>;

/** The time for an engine to end its own work on a machine that the worker mends. Then the operator finds a dead task. */
const BUSY_MS_MAX = 3_600_000;

export const reconcile: ServerStep = async (given, work) => {
  const { server, driver, pollSeconds } = work;
  if (work.isEngineStopped) return nap(BREAKER_OPEN_SECONDS);
  if (server.status === 'PENDING') return claim(work);
  if (server.status === 'FAILED' || server.status === 'DELETING') return remove(given, work);
  // After an outage, the machine has its whole time for the proof again.
  const task = given.outages ? { ...given, data: { ...given.data, proofBy: null, onAt: null } } : given;
  const spec = await work.specOf({ ...server, ...changedBy(changeOf(server)) });
  const wanted = wantedOf(server, spec, task, work.relocation);
  const seen = await driver.observe(keyOf(server), task.aborted);
  const time = machineTime(task.data, seen, task.now());
  const timed = { ...task, data: { ...task.data, ...time } };
  const step = nextStep(wanted, seen);
  switch (step) {
    case 'remove':
      return remove(task, work);
    case 'remake':
      return remake(timed, work);
    case 'create':
      return create(timed, work, wanted, spec);
    case 'prove':
      return nap(pollSeconds, { data: { ...proofData(task, work), ...time } });
    case 'wait':
      return wait(task, work, seen);
    case 'lost':
      // The observer reports the machine of a server that should be as it is.
      if (!changeOf(server)) return settle(work, seen);
      throw new DriverError('failed', 'The engine has no complete machine of that order.');
    case 'settle':
      return settle(work, seen);
    default:
      return act(step, { task, work, wanted, spec });
  }
};

/** Looks again later. A machine that is unknown has its whole time for the proof after that. */
function wait({ data, deadlineAt, now }: LeasedTask, { pollSeconds }: Work, { phase, busy }: Observation): Outcome {
  if (phase === 'unknown') return nap(pollSeconds, { data: { proofBy: null, onAt: null } });
  if (!busy || deadlineAt) return nap(pollSeconds);
  const busyBy = (data.busyBy as string | undefined) ?? new Date(now().getTime() + BUSY_MS_MAX).toISOString();
  if (Date.parse(busyBy) > now().getTime()) return nap(pollSeconds, { data: { busyBy } });
  throw new DriverError('failed', 'The engine still works on the machine.');
}

/** An order that was paid later claims its capacity here, and fails without any. Others have claimed it. */
const claim = ({ server }: Work): Outcome =>
  hop(RECONCILE, {
    commit: async (tx) => {
      const room = await reserveCapacity(tx, server);
      if (room) return move(tx, server, 'PROVISIONING', room);
      await requireSeen(tx, server.region);
      await fail(tx, server, 'out_of_stock', 'Another order took the last server of that tier.');
    },
  });

/** Makes the machine of an order. If this one cannot be finished, the worker gives it up. */
async function create(task: LeasedTask, work: Work, wanted: Wanted, spec: MachineSpec): Promise<Outcome> {
  const { server, driver, pollSeconds } = work;
  let seen: Observation;
  try {
    seen = await driver.create(spec, task.aborted);
  } catch (error) {
    const code = error instanceof DriverError ? error.code : 'unreachable';
    const isFull = code === 'no_capacity' && server.host; // Another host may have room.
    const isLast = task.attempts - task.outages >= ATTEMPTS_MAX;
    if (isOutage(error) || !(isPermanent(error) || code === 'stuck' || isLast)) throw error;
    await noteTrouble(work, error);
    if (isFull || !isPermanent(error)) return hop(RECONCILE, { data: { givenUp: server.generation } });
    return hop(UNDO, { commit: (tx) => undeliverable(tx, server, task.data) });
  }
  // An engine may lose the machine after making it. The worker looks once more, and makes it again after a pause.
  const present = seen.proven ? await driver.observe(keyOf(server), task.aborted) : seen;
  if (nextStep({ ...wanted, once: null }, present) === 'settle') return settle(work, present);
  const time = machineTime(task.data, seen, task.now());
  return hop(RECONCILE, { afterSeconds: pollSeconds, data: { created: true, ...proofData(task, work), ...time } });
}

/** The end of the time in which the machine of an order must give proof. */
const proofData = (task: LeasedTask, { proofSeconds }: Work): object => ({
  proofBy: task.data.proofBy ?? new Date(task.now().getTime() + proofSeconds * 1000).toISOString(),
});

interface Action {
  task: LeasedTask;
  work: Work;
  wanted: Wanted;
  spec: MachineSpec;
}

/** Carries out a step, and settles the machine if it is as wanted then. */
async function act(step: Act, { task, work, wanted, spec }: Action): Promise<Outcome> {
  const { server, pollSeconds } = work;
  const change = changeOf(server);
  let seen: Observation;
  try {
    seen = await call(step, { task, work, wanted, spec });
  } catch (error) {
    const { status } = server;
    if (step === 'move' || !isPermanent(error) || !(CHANGING.has(status) || status === 'SUSPENDED')) throw error;
    await noteTrouble(work, error);
    // Another attempt would fail as well. The worker brings the machine back to its state before the change.
    if (CHANGING.has(status)) return hop(UNDO, { commit: (tx) => undoChange(tx, server) });
    const refusals = Number(task.data.refusals ?? 0) + 1;
    return nap(pauseSeconds(pollSeconds, refusals), { data: { refusals } });
  }
  const isDone = step === wanted.once && seen.phase === 'present' && !seen.busy;
  const data = isDone && change ? { done: change.id } : {};
  const next = nextStep({ ...wanted, once: isDone ? null : wanted.once }, seen);
  if (next === 'settle') return settle(work, seen);
  return next === step || next === 'wait' || next === 'lost' ? nap(pollSeconds, { data }) : nap(0, { data });
}

/**
 * Drivers carry a call out once for each id, even if the step repeats. They also refuse it again, so a suspended machine, which
 * the worker never gives up, gets another id.
 */
async function call(step: Act, { task, work, wanted, spec }: Action): Promise<Observation> {
  const { server, driver } = work;
  const change = changeOf(server);
  const refused = task.data.refusals ? `-${task.data.refusals}` : '';
  // One task may also move the machine, turn it off for the operator, or undo an earlier change.
  const isOther =
    step === 'off' ? wanted.host || change?.endsOff : step === wanted.remedy && step !== change?.operation;
  const other = isOther ? `-${step}` : '';
  const id = `${change?.id ?? `mend-${task.id}-${task.createdAt.getTime()}`}${refused}${other}`;
  if (step === 'move') {
    if (!driver.move) throw new DriverError('rejected', 'The engine cannot move machines.');
    return driver.move(keyOf(server), wanted.host!, task.aborted);
  }
  if (step === 'rebuild' && change?.operation !== 'rebuild') {
    // A failed rebuild may have left the customer's machine beside its own. It is better than an empty one.
    const old = await driver.restore?.(keyOf(server), task.aborted);
    if (old?.phase === 'present') return old;
  }
  return step === 'rebuild' || step === 'resize'
    ? driver[step](spec, id, task.aborted)
    : driver.power(keyOf(server), step, id, task.aborted);
}
