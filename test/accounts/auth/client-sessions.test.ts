/** The sessions of OAuth clients and the logins of an account that never paid count apart. */
import { expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { oauthRequests } from '../oauth/requests.ts';

const PER_HOUR = 4;
const { anonymous, newAccount } = await startFreehold({ RATE_LIMIT_UNPAID_PER_HOUR: String(PER_HOUR) });
const { newClient, requestToken } = oauthRequests(anonymous);

it('A client that used up its sessions of an hour keeps the owner from no login', async () => {
  const { email, password, rest } = await newAccount();
  const client = await newClient({}, rest);
  for (let i = 0; i < PER_HOUR; i++) expect((await requestToken(client)).status).toBe(200);
  expect((await requestToken(client)).body.code).toBe('rate_limited');
  // The registration opened the first session.
  for (let i = 1; i < PER_HOUR; i++)
    expect((await anonymous('POST', '/v1/auth/login', { email, password })).status).toBe(200);
  expect((await anonymous('POST', '/v1/auth/login', { email, password })).body.code).toBe('rate_limited');
});
