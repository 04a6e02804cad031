/** Sources of exchange rates, tested with recorded answers of their servers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { agreedRate, freshRates } from '../../entities/payments/coin.ts';
import { exchangeRatesProcess } from '../../provisioning/payments/exchange-rates/fetch.ts';
import {
  type ExchangeRateSource,
  fetchExchangeRates,
  valueAt,
} from '../../provisioning/payments/exchange-rates/source.ts';
import { newDatabase } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';

const answers: Record<string, { status?: number; body: unknown; headers?: Record<string, string> }> = {};
const server = createServer((request, response) => {
  const { status = 200, body, headers } = answers[request.url!] ?? { status: 404, body: {} };
  response.writeHead(status, { 'content-type': 'application/json', location: '/kraken', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
});
await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
atEnd(() => void server.close());
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
const warnings: unknown[] = [];
const fetchRates = (source: ExchangeRateSource) =>
  fetchExchangeRates(source, AbortSignal.timeout(5_000), (warning) => warnings.push(warning));
const ask = async (source: ExchangeRateSource) =>
  new Map([...(await fetchRates(source))].map(([coin, { micros }]) => [coin, micros]));

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

  it.each([0.0009999, '4.5e-6', '0.0000000001'])('gives no rate for %j, and warns of the cheap coin', async (usd) => {
    warnings.length = 0;
    answers['/gecko'] = { body: { bitcoin: { usd }, monero: { usd: 0.001 } } };
    expect(await ask(GECKO)).toEqual(new Map([['XMR', 1_000n]]));
    expect(warnings.map(String)).toEqual([
      'Error: The source coingecko reports less than 0.001 USD for BTC, which the service cannot count exactly.',
    ]);
  });

  it.each([
    [500, '{}'],
    [302, '{}'],
    [200, 'not JSON'],
    [200, `"${'x'.repeat(5_000_000)}"`],
  ])('fails with status %d and body %.10s', async (status, body) => {
    answers['/gecko'] = { status, body };
    await expect(ask(GECKO)).rejects.toThrow();
  });

  it.each([1_700_000_000, '1700000000', 1_700_000_000_000, '2023-11-14T22:13:20Z'])(
    'tells the time of its rate as %j',
    async (time) => {
      answers['/gecko'] = { body: { bitcoin: { usd: 60000, at: time }, monero: { usd: 160, at: 'soon' } } };
      const found = await fetchRates({ ...GECKO, times: { BTC: '/bitcoin/at', XMR: '/monero/at' } });
      expect([...found]).toEqual([['BTC', { micros: 60_000_000_000n, at: new Date(1_700_000_000_000) }]]);
    },
  );

  it('is read by a JSON pointer (RFC 6901)', () => {
    const document = { 'a/b': { 'm~n': [1, 2] }, __proto__: null };
    expect(valueAt(document, '/a~1b/m~0n/1')).toBe(2);
    expect(valueAt(document, '/constructor')).toBeUndefined();
    expect(valueAt(document, '/a~1b/length/0')).toBeUndefined();
  });
});

describe('Exchange rates', () => {
  it('are stored by source: a failing source keeps its last rate, which is stale after ten minutes', async () => {
    const db = await newDatabase();
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

  it('are as old as their source says: a frozen source goes stale, and so does one behind a cache', async () => {
    const db = await newDatabase();
    const gecko = { ...GECKO, times: { BTC: '/bitcoin/at', XMR: '/monero/at' } };
    const process = exchangeRatesProcess([KRAKEN, gecko], () => {});
    const tick = async (kraken: Record<string, string>, geckoMinutes: number) => {
      const at = Date.now() / 1000 - 60 * geckoMinutes;
      answers['/kraken']!.headers = kraken;
      answers['/gecko'] = { body: { bitcoin: { usd: 60010, at }, monero: { usd: 160, at } } };
      const { commit } = await process.steps.start!({ aborted: new AbortController().signal } as never);
      await db.transaction((tx) => commit!(tx) as Promise<unknown>);
      return (await freshRates(db)).get('BTC')?.length ?? 0;
    };
    const ago = (minutes: number) => new Date(Date.now() - 60_000 * minutes).toUTCString();
    expect(await tick({}, 0)).toBe(2);
    expect(await tick({}, 11)).toBe(1);
    expect(await tick({}, -9)).toBe(2);
    expect(await tick({ date: ago(11) }, 0)).toBe(1);
    expect(await tick({ date: ago(0), age: '660' }, 0)).toBe(1);
    expect(await tick({ date: ago(9) }, 9)).toBe(2);
  });

  it('of a source whose time is far in the future are not kept', async () => {
    const db = await newDatabase();
    answers['/kraken']!.headers = { date: new Date(Date.now() + 660_000).toUTCString() };
    const { commit } = await exchangeRatesProcess([KRAKEN], () => {}).steps.start!({
      aborted: new AbortController().signal,
    } as never);
    await db.transaction((tx) => commit!(tx) as Promise<unknown>);
    expect((await freshRates(db)).size).toBe(0);
  });
});
