/** The lookups of the credentials that a batch names. */
import { expect, it } from 'vitest';
import { admitMessages } from '../../../facades/mcp/transport/messages.ts';
import { ApiError } from '../../../schema/index.ts';
import { call } from './raw-client.ts';

it('A batch of a stranger looks up no further credential after the first refusal', async () => {
  const body = Array.from({ length: 10 }, (_, id) => ({
    ...call('get_balance', { access_token: `unknown-${id}` }),
    id,
  }));
  let [lookups, left] = [0, 3];
  const authenticate = async () => {
    lookups++;
    throw new ApiError('invalid_credential');
  };
  const count = async () => {
    if (left-- <= 0) throw new ApiError('rate_limited');
  };
  const admitted = await admitMessages({ viewer: null, ip: '198.51.100.1', headers: {}, body }, authenticate, count);
  expect(lookups).toBe(4);
  const codes = [...admitted.values()].map(({ refusal }) => (refusal as ApiError).code);
  expect(codes).toEqual([...Array(3).fill('invalid_credential'), ...Array(7).fill('rate_limited')]);
});
