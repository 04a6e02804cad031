/** The whole service with real gateways, and what the tests of all of them do with it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { verifyBooks } from '../../entities/ledger.ts';
import { newDatabaseUrl } from '../database.ts';
import { eventually, type Freehold, startFreehold, type TestAccount } from '../freehold.ts';
import { newFolder, removeFolder } from '../spawn.ts';

export interface TopUpBody {
  order_number: string;
  wallet_address: string;
  payment_uri: string;
  amount_crypto: string;
  [property: string]: unknown;
}

export interface Till extends Freehold {
  paymentsFile: string;
  databaseUrl: string;
  /** Opens a top-up, as soon as the coin can be had. */
  open(account: TestAccount, amountUsd: number, crypto: string): Promise<TopUpBody>;
  /** Waits until the top-up is so. @returns it */
  becomes(account: TestAccount, topUp: TopUpBody, wanted: Record<string, unknown>): Promise<TopUpBody>;
  /** What a coin is worth from now on. */
  rate(coin: string, usd: number): Promise<unknown>;
  /** Its half hour is over. */
  expire(topUp: TopUpBody): Promise<unknown>;
  /** Micro-USD. */
  suspense(): Promise<bigint>;
}

/** Starts it over a file with these gateways, for one test file. */
export async function openTill(gateways: readonly object[], environment: Record<string, string> = {}): Promise<Till> {
  const folder = newFolder();
  const paymentsFile = join(folder, 'payments.json');
  writeFileSync(paymentsFile, JSON.stringify({ gateways }), { mode: 0o600 });
  const databaseUrl = await newDatabaseUrl(afterAll);
  const freehold = await startFreehold({
    ...{ DATABASE_URL: databaseUrl, PAYMENTS_FILE: paymentsFile, ALLOW_SIMULATED: 'true' },
    ...environment,
  });
  afterAll(() => removeFolder(folder));
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
    rate: (coin, usd) =>
      db.query(
        `insert into coin_rate (coin, source, rate_micros, observed_at)
          select $1, source, $2, now() + interval '1 day' from unnest(array['one', 'two']) as source
          on conflict (coin, source) do update set rate_micros = excluded.rate_micros`,
        [coin, String(Math.round(usd * 1_000_000))],
      ),
    expire: async ({ order_number }) => {
      await db.query(
        `update top_up set expires_at = now() - interval '1 minute', created_at = now() - interval '1 hour' where order_number = $1`,
        [order_number],
      );
      await db.query(`update payment set seen_at = now() - interval '1 hour' where order_number = $1`, [order_number]);
      await db.query('update task set run_at = now() where subject = $1', [order_number]);
    },
    suspense: async () => (await verifyBooks(db)).totals.find(({ name }) => name === 'suspense')?.micros ?? 0n,
  };
}
