/**
 * The steps from an order to a running server. The money is captured only when the machine has given proof. An order that
 * fails is refunded, and its machine is removed.
 */
import { held, post, REVENUE } from '../../../entities/payments/ledger.ts';
import { PAID_UNTIL } from '../../../entities/servers/renewal.ts';
import { ERASED } from '../../../entities/servers/server.ts';
import { done, hop, nap } from '../../tasks/tasks.ts';
import { releaseCapacity, reserveCapacity } from '../placement/capacity.ts';
import { keyOf } from '../placement/spec.ts';
import { destroyAll, rest } from './delete.ts';
import { fail, isPermanent, move, undeliverable } from './outcome.ts';
import { codeOf, isHopeless, proofWithin } from './recovery.ts';
import type { ServerStep } from './step.ts';
import { noteTrouble } from './trouble.ts';

/** Begins with an order. An order that was paid later claims its capacity here, and fails without any; others have claimed it. */
export const claim: ServerStep = async (_task, { server }) =>
  hop('create', {
    commit: async (tx) => {
      const room = server.ipv4 ? {} : await reserveCapacity(tx, server);
      if (room) await move(tx, server, 'PROVISIONING', room);
      else await fail(tx, server, 'out_of_stock', 'Another order took the last server of that tier.');
    },
  });

/** Makes the machine. If this one cannot be finished, the worker makes another. */
export const create: ServerStep = async (task, work) => {
  const { server, driver, specOf, proofSeconds } = work;
  try {
    await driver.create(await specOf(server), task.aborted);
  } catch (error) {
    const isFull = codeOf(error) === 'no_capacity' && server.host; // Another host may have room.
    const isFinal = isPermanent(error) || isHopeless(error, task.attempts - task.outages);
    if (!isFinal) throw error;
    await noteTrouble(work, task, error);
    if (isFull || !isPermanent(error)) return hop('replace');
    return hop('clean', { commit: (tx) => undeliverable(tx, server) });
  }
  const { proofBy, onSince = task.now() } = task.data;
  return hop('prove', { data: { onSince, ...(typeof proofBy !== 'string' && proofWithin(task, proofSeconds)) } });
};

/** Waits until the machine gives proof. From then on the server runs and is billed. */
export const prove: ServerStep = async (task, { server, driver, pollSeconds, proofSeconds }) => {
  const seen = await driver.observe(keyOf(server), task.aborted);
  if (seen.phase !== 'present' || !seen.proven) {
    const { proofBy } = task.data;
    // After an outage, the machine has its whole time again.
    if (typeof proofBy !== 'string' || task.outages) return nap(pollSeconds, { data: proofWithin(task, proofSeconds) });
    // An unknown state decides nothing.
    if (seen.phase !== 'unknown' && Date.parse(proofBy) <= task.now().getTime()) return hop('replace');
    // The engine lost the machine after making it, for example in a crash. The worker makes it again.
    const isUndone = seen.phase === 'absent' || seen.phase === 'incomplete';
    return isUndone ? hop('create', { afterSeconds: pollSeconds }) : nap(pollSeconds);
  }
  return done({
    commit: async (tx) => {
      const ended = { ...ERASED, failureCode: null, failureMessage: null };
      const running = await move(tx, server, 'RUNNING', { paidUntil: PAID_UNTIL, ...ended });
      await post(tx, server.accountId, {
        kind: 'capture',
        debit: held(server.accountId),
        credit: REVENUE,
        amountMicros: server.priceMonthMicros + server.setupFeeMicros,
        externalKey: `capture:${server.orderNumber}`,
        orderNumber: server.orderNumber,
        serviceCode: server.serviceCode,
        description: `First month of ${server.serviceCode}`,
        periodFrom: running.updatedAt,
        periodTo: running.paidUntil!,
      });
    },
  });
};

/** Removes the machines of a failed order, and releases its capacity. The refund has been paid before. */
export const clean: ServerStep = async (task, work) =>
  (await destroyAll(task, work))
    ? done({ commit: (tx) => releaseCapacity(tx, work.server.orderNumber) })
    : rest(task, work);
