/** Two sources of exchange rates with answers of the test. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Database } from '../../entities/database/database.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';

export interface Rates {
  /** Settings for the payments file. */
  sources: object[];
  /** Changes the rates, and waits until the service knows them. */
  say(db: Database, usd: Record<string, number>): Promise<void>;
}

/** @param usd dollars for one coin, by its code */
export async function startRates(usd: Record<string, number>): Promise<Rates> {
  let said = usd;
  const server = createServer((_request, response) => response.end(JSON.stringify(said))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  const coins = Object.fromEntries(Object.keys(usd).map((code) => [code, `/${code}`]));
  return {
    sources: ['one', 'two'].map((name) => ({ name, url: `${url}/${name}`, coins })),
    say: async (db, wanted) => {
      said = wanted;
      await db.query(`update task set run_at = now() where subject = 'cron:rates'`);
      await eventually(async () => {
        const rows = await db.query<{ coin: string; usd: string }>(
          'select coin, (rate_micros / 1000000)::text as usd from coin_rate',
        );
        return rows.length > 0 && rows.every((row) => row.usd === String(wanted[row.coin]));
      });
    },
  };
}
