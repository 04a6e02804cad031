/** Sources of exchange rates, tested with recorded answers of their servers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { agreedRate, freshRates } from '../../entities/payments/coin.ts';
import { exchangeRatesProcess } from '../../provisioning/payments/exchange-rates/fetch.ts';
import {
  type ExchangeRateSource,
  fetchExchangeRates,
  valueAt,
} from '../../provisioning/payments/exchange-rates/source.ts';
import { newDatabase } from '../setup/database.ts';

const answers: Record<string, { status?: number; body: unknown }> = {};
const server = createServer((request, response) => {
  const { status = 200, body } = answers[request.url!] ?? { status: 404, body: {} };
  response.writeHead(status, { 'content-type': 'application/json', location: '/kraken' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
});
await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
afterAll(() => void server.close());
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const KRAKEN: ExchangeRateSource = {
  ...{ name: 'kraken', url: `${url}/kraken`, inverse: false },
  coins: { BTC: '/result/XXBTZUSD/c/0', XMR: '/result/XXMRZUSD/c/0' },
};
const COINBASE: ExchangeRateSource = {
  ...{ name: 'coinbase', url: `${url}/coinbase`, inverse: true },
  coins: { BTC: '/data/rates/BTC', XMR: '/data/rates/XMR' },
};
const GECKO: ExchangeRateSource = {
  ...{ name: 'coingecko', url: `${url}/gecko`, inverse: false },
  coins: { BTC: '/bitcoin/usd', XMR: '/monero/usd' },
};
beforeEach(() => {
  answers['/kraken'] = {
    body: { error: [], result: { XXBTZUSD: { c: ['60000.10000', '0.1'] }, XXMRZUSD: { c: ['160.5', '1'] } } },
  };
  answers['/coinbase'] = { body: { data: { currency: 'USD', rates: { BTC: '0.00001666', XMR: '0.00625' } } } };
  answers['/gecko'] = { body: { bitcoin: { usd: 60010 }, monero: { usd: 1.61e2 } } };
});
const ask = (source: ExchangeRateSource) => fetchExchangeRates(source, AbortSignal.timeout(5_000));

describe('A source of exchange rates', () => {
  it('is read without rounding from texts, from numbers, and from coins for a dollar', async () => {
    expect(await ask(KRAKEN)).toEqual(
      new Map([
        ['BTC', 60_000_100_000n],
        ['XMR', 160_500_000n],
      ]),
    );
    expect(await ask(COINBASE)).toEqual(
      new Map([
        ['BTC', 60_024_009_603n],
        ['XMR', 160_000_000n],
      ]),
    );
    expect(await ask(GECKO)).toEqual(
      new Map([
        ['BTC', 60_010_000_000n],
        ['XMR', 161_000_000n],
      ]),
    );
  });

  it.each([null, '', 'abc', '-1', '0', '0.0', 'NaN', '1e99', {}, [], true, '60,000', ' 1', '1000000000'])(
    'gives no rate for %j',
    async (usd) => {
      answers['/gecko'] = { body: { bitcoin: { usd }, monero: { usd: 160 } } };
      expect(await ask(GECKO)).toEqual(new Map([['XMR', 160_000_000n]]));
    },
  );

  it.each([
    [500, '{}'],
    [302, '{}'],
    [200, 'not JSON'],
    [200, `"${'x'.repeat(5_000_000)}"`],
  ])('fails with status %d and body %.10s', async (status, body) => {
    answers['/gecko'] = { status, body };
    await expect(ask(GECKO)).rejects.toThrow();
  });

  it('is read by a JSON pointer (RFC 6901)', () => {
    const document = { 'a/b': { 'm~n': [1, 2] }, __proto__: null };
    expect(valueAt(document, '/a~1b/m~0n/1')).toBe(2);
    expect(valueAt(document, '/constructor')).toBeUndefined();
    expect(valueAt(document, '/a~1b/length/0')).toBeUndefined();
  });
});

describe('Exchange rates', () => {
  it('are stored by source: a failing source keeps its last rate, which is stale after ten minutes', async () => {
    const db = await newDatabase(afterAll);
    const faults: unknown[] = [];
    const process = exchangeRatesProcess([KRAKEN, COINBASE, GECKO], (fault) => faults.push(fault));
    const tick = async () => {
      const { commit } = await process.steps.start!({ aborted: new AbortController().signal } as never);
      await db.transaction((tx) => commit!(tx) as Promise<unknown>);
    };
    await tick();
    expect(agreedRate((await freshRates(db)).get('BTC')!)).toBe(60_010_000_000n);
    answers['/kraken'] = { status: 500, body: {} };
    answers['/gecko'] = { body: { bitcoin: { usd: 90000 } } };
    await tick();
    expect(faults).toHaveLength(1);
    expect(agreedRate((await freshRates(db)).get('BTC')!)).toBeNull();
    await db.query(`update coin_rate set observed_at = now() - interval '11 minutes'`);
    expect((await freshRates(db)).size).toBe(0);
  });
});
