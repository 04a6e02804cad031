/** Alerts accounts whose balance will not cover the renewals of the next days, at most once in 24 hours. */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { FIND_LOW_BALANCES, type LowBalance, MARK_ALERTED } from '../../../entities/payments/low-balance.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';

export const LOW_BALANCE_PROCESS = 'low-balance';
const TICK_SECONDS = 3600;
const CHUNK = 200;

export const lowBalanceProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const low = await FIND_LOW_BALANCES.all(db, [CHUNK + 1]);
      const commit = async (tx: Transaction) => {
        await lockAccount(tx, ...low.slice(0, CHUNK).map(({ accountId }) => accountId));
        for (const one of low.slice(0, CHUNK)) await alert(tx, one);
      };
      return hop('start', { afterSeconds: low.length > CHUNK ? 0 : TICK_SECONDS, commit });
    },
  });

async function alert(tx: Transaction, { accountId, availableMicros, requiredMicros }: LowBalance): Promise<void> {
  await MARK_ALERTED.all(tx, [accountId]);
  const data = { balanceUsd: usdFromMicros(availableMicros), requiredUsd: usdFromMicros(requiredMicros) };
  await record(tx, accountId, accountId, { type: 'balance.low', resource: 'account', actor: SYSTEM, data });
}
