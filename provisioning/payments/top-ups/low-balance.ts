/** Tells accounts that their balance will not cover the renewals of the next days: once in 24 hours. */

import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';

export const LOW_BALANCE_PROCESS = 'low-balance';
const TICK_SECONDS = 3600;
const CHUNK = 200;

interface Low {
  accountId: string;
  availableMicros: bigint;
  requiredMicros: bigint;
}

export const lowBalanceProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const low = await db.query<Low>(LOW, [CHUNK + 1]);
      const commit = async (tx: Transaction) => {
        await lockAccount(tx, ...low.slice(0, CHUNK).map(({ accountId }) => accountId));
        for (const one of low.slice(0, CHUNK)) await alert(tx, one);
      };
      return hop('start', { afterSeconds: low.length > CHUNK ? 0 : TICK_SECONDS, commit });
    },
  });

/** What is suspended does not count: its owner has heard of that. */
const LOW = `
  select account.id as account_id, available_micros, sum(price_month_micros)::bigint as required_micros
  from server join account on account.id = server.account_id join balance on balance.account_id = server.account_id
  where auto_renew and server.status not in ('SUSPENDED', 'FAILED', 'DELETING', 'DELETED')
    and paid_until <= now() + low_balance_alert_days * interval '1 day' and low_balance_alert_days > 0
    and (low_balance_alerted_at is null or low_balance_alerted_at <= now() - interval '24 hours')
  group by account.id, available_micros having sum(price_month_micros) > available_micros
  limit $1`;

async function alert(tx: Transaction, { accountId, availableMicros, requiredMicros }: Low): Promise<void> {
  await tx.query('update account set low_balance_alerted_at = now() where id = $1', [accountId]);
  const data = { balanceUsd: usdFromMicros(availableMicros), requiredUsd: usdFromMicros(requiredMicros) };
  await record(tx, accountId, accountId, { type: 'balance.low', resource: 'account', actor: SYSTEM, data });
}
