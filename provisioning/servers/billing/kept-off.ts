/**
 * Servers of an account that is suspended together with them. They are off until the suspension ends, and then those that
 * it turned off are turned on again. Their paid time goes on, and they do not renew.
 */
import { Account } from '../../../entities/accounts/account.ts';
import { find, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Actor } from '../../../entities/history/audit.ts';
import { transition } from '../../../entities/history/transition.ts';
import { newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { LOCK_SERVERS_OF_ACCOUNT } from '../../../entities/servers/find.ts';
import { LIST_STOPPED, LOCK_KEPT_OFF, LOCK_STILL_ON } from '../../../entities/servers/renewal.ts';
import { SERVER_LIFECYCLE, Server, type ServerChange } from '../../../entities/servers/server.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import { serverTask } from '../task.ts';
import { byOrderNumber } from './charge.ts';
import { endResumes } from './resume.ts';

/**
 * Turns the servers of an account off or on, as its suspension or its end wants. A suspended account resumes no server. A
 * server with a change in progress follows in a later round of renewals.
 */
export async function followSuspension(tx: Transaction, accountId: string, actor: Actor): Promise<void> {
  await lockAccount(tx, accountId);
  const { suspendedAt, serversOff } = (await find(tx, Account, { id: accountId }))!;
  await LOCK_SERVERS_OF_ACCOUNT.all(tx, [accountId]);
  const ended = suspendedAt ? await endResumes(tx, accountId) : [];
  const servers = await (serversOff ? LOCK_STILL_ON : LOCK_KEPT_OFF).all(tx, [accountId]);
  for (const server of servers) await (serversOff ? turnOff : letGo)(tx, server, actor);
  // The machine of a stopped server may have come on by itself.
  const stopped = serversOff ? await LIST_STOPPED.all(tx, [accountId]) : [];
  for (const server of [...ended, ...servers, ...stopped].sort(byOrderNumber)) await startTask(tx, serverTask(server));
}

const turnOff = (tx: Transaction, { orderNumber }: Server, actor: Actor): Promise<unknown> =>
  transition(tx, SERVER_LIFECYCLE, orderNumber, 'STOPPING', {
    actor,
    set: { ...changeOf('stop', 'RUNNING'), keptOff: true },
    data: { operation: 'stop', reason: 'account_suspended' },
  });

async function letGo(tx: Transaction, { orderNumber, status }: Server, actor: Actor): Promise<void> {
  if (status === 'STOPPED')
    await transition(tx, SERVER_LIFECYCLE, orderNumber, 'STARTING', {
      actor,
      set: { ...changeOf('start', 'STOPPED'), keptOff: false },
      data: { operation: 'start', reason: 'account_resumed' },
    });
  // A worker turns an unpaid server on when its next month is paid.
  else
    await update(
      tx,
      Server,
      { orderNumber },
      { keptOff: false, ...(status === 'SUSPENDED' && { suspendedFrom: 'RUNNING' }) },
    );
}

const changeOf = (operation: 'start' | 'stop', from: ServerChange['from']) => ({
  change: { id: newId('chg'), from, operation },
  failureCode: null,
  failureMessage: null,
});
