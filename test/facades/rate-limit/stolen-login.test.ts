/** A thief has one login of an account that never paid, and uses up all that the account may do. */
import { expect, it } from 'vitest';
import { oauthRequests } from '../../accounts/oauth/requests.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';

const { anonymous, newAccount, publicUrl } = await startFreehold({
  RATE_LIMIT_UNPAID_PER_HOUR: '8',
  TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
});
const { newClient, tokenOf } = oauthRequests(anonymous);
const THIEF = { 'x-forwarded-for': '203.0.113.66' };
const OWNER = { 'x-forwarded-for': '198.51.100.7' };

/** Uses up the changes, and then the urgent calls and the payments. */
async function flood(token: string) {
  const thief = restClient(publicUrl, token);
  const end = () => thief('DELETE', '/v1/auth/api-keys/key_nothing', undefined, THIEF);
  for (let i = 0; i < 17; i++) await end();
  expect((await end()).status).toBe(429);
  for (let i = 0; i < 9; i++) await thief('POST', '/v1/billing/topups', {}, THIEF);
}

it('A person logs in beside the thief, pays, and throws the thief out', async () => {
  const { email, password, accessToken } = await newAccount();
  await flood(accessToken);
  const { body } = await anonymous('POST', '/v1/auth/login', { email, password }, OWNER);
  const owner = restClient(publicUrl, body.tokens.access_token);
  const topUp = { amount_usd: 30, crypto: 'USDC-BASE' };
  expect((await owner('POST', '/v1/billing/topups', topUp, OWNER)).status).toBe(200);
  const change = { current_password: password, new_password: 'another heron on the roof', revoke: 'everything' };
  expect((await owner('POST', '/v1/auth/password', change, OWNER)).status).toBe(200);
  expect((await restClient(publicUrl, accessToken)('GET', '/v1/account')).status).toBe(401);
});

it('An agent replaces the secret of its client', async () => {
  const client = await newClient({ scope: 'full' });
  await flood(await tokenOf(client));
  const owner = restClient(publicUrl, await tokenOf(client));
  const path = `/v1/oauth/clients/${client.client_id}/rotate-secret`;
  expect((await owner('POST', path, { client_secret: client.client_secret }, OWNER)).status).toBe(200);
});
