/** The whole service with real gateways, and the steps that their tests share. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { signalTask } from '../../../entities/tasks/start.ts';
import { newDatabaseUrl } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually, type Freehold, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

export interface TopUpBody {
  order_number: string;
  wallet_address: string;
  payment_uri: string;
  amount_crypto: string;
  [property: string]: unknown;
}

export interface GatewayWorld extends Freehold {
  paymentsFile: string;
  databaseUrl: string;
  /** Opens a top-up as soon as the coin is available. */
  open(account: TestAccount, amountUsd: number, crypto: string): Promise<TopUpBody>;
  /** Waits until the top-up has these members. @returns the top-up */
  becomes(account: TestAccount, topUp: TopUpBody, wanted: Record<string, unknown>): Promise<TopUpBody>;
  /** Sets the exchange rate: dollars for one coin. */
  rate(coin: string, usd: number): Promise<unknown>;
  /** Lets the half hour of the top-up pass. */
  expire(topUp: TopUpBody): Promise<unknown>;
  /** The sum in suspense, in micro-USD. */
  suspense(): Promise<bigint>;
}

/** The sources of exchange rates that the payments file requires. */
export const rateSources = (url: string, codes: readonly string[]): object[] =>
  ['one', 'two'].map((name) => ({ name, url, coins: Object.fromEntries(codes.map((code) => [code, `/${code}`])) }));

/** Starts the service with these gateways for one test file. @param usd dollars for one coin, by its code */
export async function openGatewayWorld(
  gateways: readonly object[],
  usd: Record<string, number>,
): Promise<GatewayWorld> {
  const said = { ...usd };
  const exchange = createServer((_request, response) => response.end(JSON.stringify(said))).listen(0, '127.0.0.1');
  await once(exchange, 'listening');
  atEnd(() => exchange.close().closeAllConnections());
  const exchangeUrl = `http://127.0.0.1:${(exchange.address() as { port: number }).port}`;
  const folder = newFolder();
  const paymentsFile = join(folder, 'payments.json');
  writeFileSync(paymentsFile, JSON.stringify({ gateways, rates: rateSources(exchangeUrl, Object.keys(usd)) }), {
    mode: 0o600,
  });
  const databaseUrl = await newDatabaseUrl();
  const freehold = await startFreehold({
    ...{ DATABASE_URL: databaseUrl, PAYMENTS_FILE: paymentsFile, ALLOW_SIMULATED: 'true' },
  });
  atEnd(() => removeFolder(folder));
  const { db } = freehold;
  const read = async ({ rest }: TestAccount, { order_number }: TopUpBody) =>
    (await rest('GET', `/v1/billing/topups/${order_number}`)).body as TopUpBody;
  return {
    ...freehold,
    paymentsFile,
    databaseUrl,
    open: (account, amount_usd, crypto) =>
      eventually(async () => {
        const { status, body } = await account.rest('POST', '/v1/billing/topups', { amount_usd, crypto });
        if (status !== 200 && body.code !== 'coin_unavailable') throw new Error(JSON.stringify(body));
        return status === 200 && (body as TopUpBody);
      }),
    becomes: async (account, topUp, wanted) => {
      await eventually(async () => {
        const found = await read(account, topUp);
        return Object.entries(wanted).every(([name, value]) => JSON.stringify(found[name]) === JSON.stringify(value));
      }).catch(() => undefined);
      const found = await read(account, topUp);
      expect(found).toMatchObject(wanted);
      return found;
    },
    rate: (coin, wanted) => {
      said[coin] = wanted;
      return db.query('update coin_rate set rate_micros = $2, observed_at = now() where coin = $1', [
        coin,
        String(Math.round(wanted * 1_000_000)),
      ]);
    },
    expire: async ({ order_number }) => {
      await db.query(
        `update top_up set expires_at = now() - interval '1 minute', created_at = now() - interval '1 hour' where order_number = $1`,
        [order_number],
      );
      await db.query(`update payment set seen_at = now() - interval '1 hour' where order_number = $1`, [order_number]);
      await db.transaction((tx) => signalTask(tx, order_number));
    },
    suspense: async () => (await verifyBooks(db)).totals.find(({ name }) => name === 'suspense')?.micros ?? 0n,
  };
}
