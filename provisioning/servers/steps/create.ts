/**
 * From an order to a running server: make the machine, wait for proof, and only then capture the money. An order that
 * cannot be fulfilled fails, gives the money back in full, and leaves nothing behind.
 */

import { hoursFromNow, PAID_HOURS } from '../../../entities/money.ts';
import { held, post, REVENUE } from '../../../entities/payments/ledger.ts';
import { done, hop, nap } from '../../tasks/tasks.ts';
import { releaseCapacity, reserveCapacity } from '../placement/capacity.ts';
import { keyOf } from '../placement/spec.ts';
import { destroyAll, restSeconds } from './delete.ts';
import { fail, isPermanent, move, UNDELIVERABLE } from './outcome.ts';
import { codeOf, isHopeless, nextRecoveryStep, proofWithin } from './recovery.ts';
import type { ServerStep } from './step.ts';

/** Begins with an order. Most have claimed their room; one that was paid later claims it here, and fails without any. */
export const claim: ServerStep = async (_task, { server }) =>
  hop('create', {
    commit: async (tx) => {
      const room = server.ipv4 ? {} : await reserveCapacity(tx, server);
      if (room) await move(tx, server, 'PROVISIONING', room);
      else await fail(tx, server, 'out_of_stock', 'The last one was taken by another order.');
    },
  });

/** Makes the machine; again, if it was made before. What cannot be finished is given up, and another is made. */
export const create: ServerStep = async (task, { server, driver, specOf, proofSeconds }) => {
  try {
    await driver.create(await specOf(server), task.aborted);
  } catch (error) {
    // Another host may have room.
    if (server.host && codeOf(error) === 'no_capacity') return hop('replace');
    if (isPermanent(error))
      return hop('clean', { commit: (tx) => fail(tx, server, 'provisioning_failed', UNDELIVERABLE) });
    if (isHopeless(error, task.attempts)) return hop('replace');
    throw error;
  }
  return hop('prove', typeof task.data.proofBy === 'string' ? {} : { data: proofWithin(proofSeconds) });
};
/** Waits until the machine gives proof; then the server runs, and is billed from that moment. */
export const prove: ServerStep = async (task, { server, driver, pollSeconds, proofSeconds }) => {
  const seen = await driver.observe(keyOf(server), task.aborted);
  if (seen.phase !== 'present' || !seen.proven) {
    const { proofBy } = task.data;
    if (typeof proofBy !== 'string') return nap(pollSeconds, { data: proofWithin(proofSeconds) });
    // Of what nobody can see nothing is concluded.
    if (seen.phase !== 'unknown' && Date.parse(proofBy) <= Date.now()) return hop(nextRecoveryStep(task));
    // Something became of it after it was made, such as an engine that died: it is made again.
    const isUndone = seen.phase === 'absent' || seen.phase === 'incomplete';
    return isUndone ? hop('create', { afterSeconds: pollSeconds }) : nap(pollSeconds);
  }
  const paidUntil = hoursFromNow(PAID_HOURS);
  return done({
    commit: async (tx) => {
      await move(tx, server, 'RUNNING', { paidUntil, rootPassword: null, failureCode: null, failureMessage: null });
      await post(tx, server.accountId, [
        {
          kind: 'capture',
          debit: held(server.accountId),
          credit: REVENUE,
          amountMicros: server.priceMonthMicros + server.setupFeeMicros,
          externalKey: `capture:${server.orderNumber}`,
          orderNumber: server.orderNumber,
          serviceCode: server.serviceCode,
          description: `First month of ${server.serviceCode}`,
          periodFrom: new Date(),
          periodTo: paidUntil,
        },
      ]);
    },
  });
};

/** Removes what was made of an order that failed, and gives its place back. The customer has the money already. */
export const clean: ServerStep = async (task, work) =>
  (await destroyAll(task, work))
    ? done({ commit: (tx) => releaseCapacity(tx, work.server.orderNumber) })
    : nap(await restSeconds(work));
