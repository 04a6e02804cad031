/**
 * From an order to a running server: make the machine, wait for proof, and only then capture the money. An order that
 * cannot be fulfilled fails, gives the money back in full, and leaves nothing behind.
 */

import type { Transaction } from '../../../entities/database/database.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { type Move, transition } from '../../../entities/history/lifecycle.ts';
import { hoursFromNow, PAID_HOURS } from '../../../entities/money.ts';
import { available, held, post, REVENUE } from '../../../entities/payments/ledger.ts';
import { SERVER_LIFECYCLE, type Server } from '../../../entities/servers/server.ts';
import { done, hop, nap, Stale } from '../../tasks/tasks.ts';
import { DriverError, type DriverErrorCode } from '../drivers/driver.ts';
import { occupy, vacate } from '../placement/capacity.ts';
import { keyOf } from '../placement/spec.ts';
import { destroyAll, restSeconds } from './delete.ts';
import type { ServerStep } from './process.ts';
import { codeOf, isHopeless, nextRung, proofWithin } from './recovery.ts';

/** Begins with an order. Most have claimed their room; one that was paid later claims it here, and fails without any. */
export const claim: ServerStep = async (_task, { server }) =>
  hop('create', {
    commit: async (tx) => {
      const room = server.ipv4 ? {} : await occupy(tx, server);
      if (room) await move(tx, server, 'PROVISIONING', room);
      else await fail(tx, server, 'out_of_stock', 'The last one was taken by another order.');
    },
  });

export const UNDELIVERABLE = 'The machine could not be delivered. The order was paid back in full.';

/** Makes the machine; again, if it was made before. What cannot be finished is given up, and another is made. */
export const create: ServerStep = async (task, { server, driver, specOf, proofSeconds }) => {
  try {
    await driver.create(await specOf(server), task.aborted);
  } catch (error) {
    // Another host may have room.
    if (server.host && codeOf(error) === 'no_capacity') return hop('replace');
    if (isFinal(error)) return hop('clean', { commit: (tx) => fail(tx, server, 'provisioning_failed', UNDELIVERABLE) });
    if (isHopeless(error, task.attempts)) return hop('replace');
    throw error;
  }
  return hop('prove', typeof task.data.proofBy === 'string' ? {} : { data: proofWithin(proofSeconds) });
};

const FINAL: ReadonlySet<DriverErrorCode> = new Set(['no_capacity', 'rejected']);

/** Whether trying again would change nothing. */
export const isFinal = (error: unknown): boolean => error instanceof DriverError && FINAL.has(error.code);

/** Waits until the machine gives proof; then the server runs, and is billed from that moment. */
export const prove: ServerStep = async (task, { server, driver, pollSeconds, proofSeconds }) => {
  const seen = await driver.observe(keyOf(server), task.aborted);
  if (seen.phase !== 'present' || !seen.proven) {
    const { proofBy } = task.data;
    if (typeof proofBy !== 'string') return nap(pollSeconds, { data: proofWithin(proofSeconds) });
    // Of what nobody can see nothing is concluded.
    if (seen.phase !== 'unknown' && Date.parse(proofBy) <= Date.now()) return hop(nextRung(task));
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
    ? done({ commit: (tx) => vacate(tx, work.server.orderNumber) })
    : nap(await restSeconds(work));

/** Lets an order fail that has not run yet: the hold is released in full. */
export async function fail(
  tx: Transaction,
  server: Server,
  failureCode: string,
  failureMessage: string,
): Promise<void> {
  await move(tx, server, 'FAILED', { failureCode, failureMessage, rootPassword: null });
  await releaseHold(tx, server);
}

/**
 * Gives the held price of an order back; what was captured before is not held any more and stays. One that waits for its
 * payment holds nothing yet.
 */
export async function releaseHold(tx: Transaction, server: Server): Promise<bigint> {
  const [hold] = await tx.query('select from transfer where external_key = $1', [`hold:${server.orderNumber}`]);
  if (!hold) return 0n;
  const amountMicros = server.priceMonthMicros + server.setupFeeMicros;
  await post(tx, server.accountId, [
    {
      kind: 'release',
      debit: held(server.accountId),
      credit: available(server.accountId),
      amountMicros,
      externalKey: `release:${server.orderNumber}`,
      orderNumber: server.orderNumber,
      serviceCode: server.serviceCode,
      description: `${server.serviceCode} was not delivered`,
    },
  ]);
  return amountMicros;
}

/** @throws Stale if the server went another way meanwhile, such as being deleted */
export async function move(
  tx: Transaction,
  server: Server,
  to: Server['status'],
  set: Partial<Server>,
  more: Pick<Move<Server>, 'event' | 'data'> = {},
): Promise<void> {
  const moved = await transition(tx, SERVER_LIFECYCLE, server.orderNumber, to, { actor: SYSTEM, set, ...more });
  if (!moved) throw new Stale(`${server.orderNumber} could not become ${to}.`);
}
