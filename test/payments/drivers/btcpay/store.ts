/** The service with a stand-in for BTCPay, and a customer. Only calls of BTCPay trigger a check of invoices. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect } from 'vitest';
import { newDatabaseUrl } from '../../../setup/database.ts';
import { atEnd } from '../../../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../../../setup/freehold.ts';
import { freePort, newFolder, removeFolder } from '../../../setup/spawn.ts';
import { SECRET_KEY } from '../../../setup/vault.ts';
import { startRates } from '../../exchange-rates.ts';
import { API_KEY, Btcpay, STORE, type StoredInvoice, WEBHOOK_SECRET } from './btcpay.ts';

const RATE_USD = 50_000;

export async function openStore() {
  const btcpay = await new Btcpay().start();
  const rates = await startRates({ BTC: RATE_USD, 'BTC-LN': RATE_USD });
  const folder = newFolder();
  const file = join(folder, 'payments.json');
  const gateway = { driver: 'btcpay', url: btcpay.url, store: STORE, api_key: API_KEY, webhook_secret: WEBHOOK_SECRET };
  writeFileSync(file, JSON.stringify({ gateways: [gateway], rates: rates.sources }));
  chmodSync(file, 0o600);
  atEnd(async () => {
    await btcpay.stop();
    removeFolder(folder);
  });
  const environment = {
    DATABASE_URL: await newDatabaseUrl(),
    DATA_DIR: folder,
    SECRET_KEY,
    PORT: String(await freePort()),
    INTERNAL_PORT: String(await freePort()),
    PAYMENTS_FILE: file,
    ALLOW_SIMULATED: 'true',
    POLL_SECONDS: '60',
  };
  const freehold = await startFreehold(environment);
  let account: TestAccount;
  let usd = 0;
  /** Changes the exchange rate: dollars for one coin. */
  const worth = (wanted: number) => {
    usd = wanted;
    return rates.say(freehold.db, { BTC: usd, 'BTC-LN': usd });
  };
  beforeEach(async () => {
    btcpay.faults = [];
    btcpay.fee = 0n;
    if (usd !== RATE_USD) await worth(RATE_USD);
    account = await freehold.newAccount();
  });
  atEnd(() => expect(btcpay.problems).toEqual([]));

  const order = (crypto = 'BTC') => account.rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto });
  const read = async (number: string) => (await account.rest('GET', `/v1/billing/topups/${number}`)).body;
  const send = async ({ body, headers }: ReturnType<Btcpay['event']>) => {
    const answer = await fetch(`${freehold.publicUrl}/hooks/payments`, { method: 'POST', body, headers });
    await answer.arrayBuffer();
    return answer.status;
  };
  return {
    btcpay,
    freehold,
    environment,
    worth,
    order,
    read,
    send,
    topUps: async () => (await account.rest('GET', '/v1/billing/topups')).body.data,
    balance: () => account.balance(),
    opened: async (crypto = 'BTC') => {
      const { status, body } = await order(crypto);
      expect([status, body]).toEqual([200, body]);
      return { topUp: body, invoice: btcpay.invoiceOf(body.order_number) };
    },
    shows: (number: string, wanted: object) =>
      eventually(async () => {
        const body = await read(number);
        return Object.entries(wanted).every(([key, value]) => String(body[key]) === String(value)) && body;
      }),
    /** Sends an event of BTCPay. @returns the HTTP status */
    tell: (invoice: StoredInvoice, type = 'InvoiceProcessing') => send(btcpay.event(invoice, type)),
  };
}
