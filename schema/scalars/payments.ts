/** Money, coins and payments. Amounts are micro-USD in TypeScript, and US dollars on the wire. */
import { GraphQLError } from 'graphql';
import { microsFromUsd, usdFromMicros } from '../../entities/money.ts';
import { scalar, text } from './scalar.ts';

const MICROS = { parse: microsFromUsd, serialize: usdFromMicros };
scalar('Usd', 'An amount in US dollars.', { type: 'number', minimum: -1e9, maximum: 1e9 }, { ...MICROS, example: 6 });
scalar('UsdLimit', 'A limit in US dollars.', { type: 'number', minimum: 0, maximum: 1e9 }, MICROS);
scalar(
  'TopUpAmount',
  'The amount of a top-up in US dollars, with at most two decimals.',
  {
    type: 'number',
    minimum: 30,
    maximum: 10_000,
    'x-error': { minimum: 'amount_too_low', maximum: 'amount_too_high' },
  },
  {
    example: 100,
    parse: (usd: number) => {
      const micros = microsFromUsd(usd);
      if (micros % 10_000n !== 0n) throw new GraphQLError('An amount has at most two decimals.');
      return micros;
    },
    serialize: usdFromMicros,
  },
);
scalar('CoinCode', 'The code of a coin, in upper or lower case.', text(1, 32), {
  parse: (value: string) => value.toUpperCase(),
});
scalar('Month', 'A month, in UTC.', text(7, 7, { pattern: '^2[0-9]{3}-(0[1-9]|1[0-2])$' }), { example: '2026-11' });
scalar('AlertDays', 'A number of days, 0 to 30.', { type: 'integer', format: 'int32', minimum: 0, maximum: 30 });
scalar(
  'X402Payment',
  'An x402 payment: JSON in base64.',
  { type: 'string', maxLength: 16_384 },
  { example: 'eyJ4NDAyVmVyc2lvbiI6Mn0=' },
);
