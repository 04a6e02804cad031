/** Asks the sources of exchange rates each minute. A source that fails does not affect the others. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { KEEP_RATES } from '../../../entities/payments/coin.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { type ExchangeRateSource, fetchExchangeRates } from './source.ts';

export const EXCHANGE_RATES_PROCESS = 'rates';
const TICK_SECONDS = 60;
const ANSWER_SECONDS = 10;

export const exchangeRatesProcess = (
  sources: readonly ExchangeRateSource[],
  onError: (fault: unknown) => void,
): Process =>
  periodic({
    start: async ({ aborted }) => {
      const answers = await Promise.allSettled(
        sources.map((source) =>
          fetchExchangeRates(source, AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_SECONDS * 1000)]), onError),
        ),
      );
      aborted.throwIfAborted();
      const rates = answers.flatMap((answer, index) => {
        const { name } = sources[index]!;
        if (answer.status === 'rejected') {
          onError(new Error(`The source ${name} reports no rates.`, { cause: answer.reason }));
          return [];
        }
        return [...answer.value].map(([coin, { micros, at }]) => ({
          ...{ coin, source: name, rate_micros: String(micros), at },
        }));
      });
      const commit = (tx: Transaction) => KEEP_RATES.all(tx, [JSON.stringify(rates)]);
      return hop('start', { afterSeconds: TICK_SECONDS, commit });
    },
  });
