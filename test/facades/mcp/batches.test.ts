/** Batches, and their lookups of credentials, counts and refusals. */
import { describe, expect, it } from 'vitest';
import { admitMessages } from '../../../facades/mcp/transport/messages.ts';
import { ApiError, type Viewer } from '../../../schema/index.ts';
import { viewer } from '../sample-api.ts';
import { call } from './raw-client.ts';

it('A batch of a stranger looks up no further credential, and counts no further, after the first refusal', async () => {
  const body = Array.from({ length: 10 }, (_, id) => ({
    ...call('get_balance', { access_token: `unknown-${id}` }),
    id,
  }));
  let [lookups, left] = [0, 3];
  const authenticate = async () => {
    lookups++;
    throw new ApiError('invalid_credential');
  };
  let counts = 0;
  const count = async () => {
    counts++;
    if (left-- <= 0) throw new ApiError('rate_limited');
  };
  const admitted = await admitMessages({ viewer: null, ip: '198.51.100.1', headers: {}, body }, authenticate, count);
  expect([lookups, counts]).toEqual([4, 4]);
  const codes = [...admitted.values()].map(({ refusal }) => (refusal as ApiError).code);
  expect(codes).toEqual([...Array(3).fill('invalid_credential'), ...Array(7).fill('rate_limited')]);
});

describe('A limit that refuses', () => {
  const refuse = async () => {
    throw new ApiError('rate_limited');
  };
  const admit = (from: Viewer | null, body: unknown, as: Viewer | null = null) =>
    admitMessages({ viewer: from, ip: '198.51.100.1', headers: {}, body }, async () => as, refuse).then(
      (admitted) => [...admitted.values()].map(({ refusal }) => (refusal as ApiError).code),
      ({ code }) => code,
    );
  const one = call('get_balance');
  const withToken = call('get_balance', { access_token: 'of an account' });
  const two = [one, { ...one, id: 2 }];

  it.each<[what: string, outcome: Promise<unknown>, expected: unknown]>([
    ['each call of a batch of a stranger refuses the POST', admit(null, two), 'rate_limited'],
    ['each call of a batch of an account refuses the POST', admit(viewer('read'), two), 'rate_limited'],
    ['the only call of a stranger refuses the POST', admit(null, one), 'rate_limited'],
    ['the only call of an account refuses the call', admit(viewer('read'), one), ['rate_limited']],
    [
      'the only call of an account by its argument refuses the call',
      admit(null, withToken, viewer()),
      ['rate_limited'],
    ],
  ])('%s', async (_, outcome, expected) => {
    expect(await outcome).toEqual(expected);
  });
});

it.each([
  ['an object', { toString: 1, valueOf: 1 }],
  ['an object like a prototype', JSON.parse('{"__proto__":{"toString":1}}')],
  ['a number', 7],
  ['a list', ['a']],
  ['a truth value', false],
])('A credential that is %s counts, gets no lookup, and is an invalid argument', async (_, access_token) => {
  let [lookups, counts] = [0, 0];
  const admitted = await admitMessages(
    { viewer: null, ip: '198.51.100.1', headers: {}, body: call('get_balance', { access_token }) },
    async () => {
      lookups++;
      return null;
    },
    async () => void counts++,
  );
  expect([lookups, counts]).toEqual([0, 1]);
  const { refusal } = admitted.get(1) as { refusal: ApiError };
  expect([refusal.code, refusal.extras.errors]).toEqual([
    'validation_failed',
    [{ field: 'access_token', code: 'wrong_type', message: 'access_token must be a string.' }],
  ]);
});
