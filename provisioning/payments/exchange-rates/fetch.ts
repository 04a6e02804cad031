/** Asks the sources of rates each minute. What one of them does not say, the others still do. */
import type { Transaction } from '../../../entities/database/transaction.ts';
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
          fetchExchangeRates(source, AbortSignal.any([aborted, AbortSignal.timeout(ANSWER_SECONDS * 1000)])),
        ),
      );
      aborted.throwIfAborted();
      const said = answers.flatMap((answer, index) => {
        const { name } = sources[index]!;
        if (answer.status === 'rejected') {
          onError(new Error(`Rates of ${name} could not be had.`, { cause: answer.reason }));
          return [];
        }
        return [...answer.value].map(([coin, rateMicros]) => ({ coin, source: name, rateMicros: String(rateMicros) }));
      });
      const commit = (tx: Transaction) => tx.query(KEEP, [JSON.stringify(said)]);
      return hop('start', { afterSeconds: TICK_SECONDS, commit });
    },
  });

const KEEP = `
  insert into coin_rate (coin, source, rate_micros, observed_at)
  select coin, source, "rateMicros", now() from jsonb_to_recordset($1::jsonb) as said(coin text, source text, "rateMicros" bigint)
  order by coin, source
  on conflict (coin, source) do update set rate_micros = excluded.rate_micros, observed_at = now()`;
