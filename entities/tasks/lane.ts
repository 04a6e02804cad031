/**
 * The lanes of tasks that anybody can start. Accounts that never paid are easy to make, so their tasks have lanes of their own.
 * There they keep each other waiting, and no customer.
 */
import { OPERATOR_ACCOUNT } from '../history/audit.ts';
import { hasPaidSql } from '../payments/payer.ts';

export const WEBHOOK_LANE = 'webhooks';
/** The lane of the tasks that read the cards of agents. */
export const AGENT_LANE = 'agents';
/** The lane of the tasks of top-ups, and of payments by x402. */
export const PAYMENT_LANE = 'payments';
/** The lanes that have another one for accounts that never paid. */
export const OPEN_LANES = [WEBHOOK_LANE, AGENT_LANE, PAYMENT_LANE];

const FREE = '-free';
/** The lane of accounts that never paid, beside the given one of payers and the operator. */
export const freeLane = (lane: string): string => lane + FREE;

const quoted = OPEN_LANES.map((lane) => `'${lane}'`).join(', ');
/** The lane of a task, as SQL. @param lane the one that its process names @param account its account */
export const laneSql = (lane: string, account: string): string =>
  `case when ${lane} not in (${quoted}) or ${account} = '${OPERATOR_ACCOUNT}' or ${hasPaidSql(account)}
    then ${lane} else ${lane} || '${FREE}' end`;
/** The lane of an existing task, as SQL. Its account may have paid since it started. */
export const PRESENT_LANE = laneSql(`replace(task.lane, '${FREE}', '')`, 'task.account_id');
