/** The end of the work on a machine that is as wanted. It delivers an order, or ends a change or a suspension. */

import { update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { held, post, REVENUE } from '../../../entities/payments/ledger.ts';
import { PAID_UNTIL } from '../../../entities/servers/renewal.ts';
import { CHANGING, ERASED, Server } from '../../../entities/servers/server.ts';
import { done, type Outcome } from '../../tasks/tasks.ts';
import { completeChange } from '../billing/change.ts';
import { completeResume } from '../billing/resume.ts';
import type { Observation } from '../drivers/driver.ts';
import { move } from '../move.ts';
import { endRelocation } from '../placement/relocation.ts';
import type { Work } from './step.ts';
import { changedBy } from './wanted.ts';

/** Ends the task, and a move of the machine with it. */
export function settle({ server, relocation, driver }: Work, { host }: Pick<Observation, 'host'>): Outcome {
  const { status, change } = server;
  if (status === 'PROVISIONING') return done({ commit: (tx) => deliver(tx, server) });
  if (CHANGING.has(status)) return done({ commit: (tx) => completeChange(tx, server, changedBy(change)) });
  if (status === 'SUSPENDED' && change?.operation === 'resume')
    return done({ commit: (tx) => completeResume(tx, server, change) });
  if (!relocation && !server.remedy) return done();
  return done({
    commit: async (tx) => {
      await forgetRemedy(tx, server);
      if (relocation) await endRelocation(tx, server, relocation, host, driver.name);
    },
  });
}

/** Notes that nothing is left to undo. */
export async function forgetRemedy(tx: Transaction, { orderNumber, remedy }: Server): Promise<void> {
  if (remedy) await update(tx, Server, { orderNumber }, { remedy: null });
}

/** Captures the money of an order. The first month begins. */
async function deliver(tx: Transaction, server: Server): Promise<void> {
  const { accountId, orderNumber, serviceCode, priceMonthMicros, setupFeeMicros } = server;
  const ended = { ...ERASED, failureCode: null, failureMessage: null };
  const running = await move(tx, server, 'RUNNING', { paidUntil: PAID_UNTIL, ...ended });
  await post(tx, accountId, {
    kind: 'capture',
    debit: held(accountId),
    credit: REVENUE,
    amountMicros: priceMonthMicros + setupFeeMicros,
    externalKey: `capture:${orderNumber}`,
    orderNumber,
    serviceCode,
    description: `First month of ${serviceCode}`,
    periodFrom: running.updatedAt,
    periodTo: running.paidUntil!,
  });
}
