/** OAuth clients register, get tokens, introspect them, and revoke them. */
import { type Account, must } from './account.ts';
import type { Operation, Weighed } from './actor.ts';
import type { ApiClient } from './api-client.ts';
import { RestClient } from './rest-client.ts';

interface Registered {
  client_id: string;
  client_secret: string;
}

export const registerClient = ({ owner }: Pick<Account, 'owner'>, scope: string): Promise<Registered> =>
  must(owner, 'registerOauthClient', {
    client_name: 'soak',
    scope,
    grant_types: ['client_credentials', 'refresh_token'],
    token_endpoint_auth_method: 'client_secret_post',
  });

export const newTokens = (api: ApiClient, { client_id, client_secret }: Registered) =>
  must(api, 'issueOauthToken', { grant_type: 'client_credentials', client_id, client_secret });

const useTokens: Operation = async (actor) => {
  const { account, urls, chance, measurements, always } = actor;
  const client = await registerClient(account, 'servers billing');
  const { client_id, client_secret } = client;
  const stranger = new RestClient({ who: actor.name, urls, chance, measurements, always });
  const first = await newTokens(stranger, client);
  const api = new RestClient({ who: actor.name, urls, chance, measurements, always, credential: first.access_token });
  await api.ask('getBalance');
  const { refresh_token } = first;
  const grant = { grant_type: 'refresh_token', client_id, client_secret, refresh_token };
  const { access_token: token } = await must(stranger, 'issueOauthToken', grant);
  api.credential = token;
  await api.ask('listServers');
  const { active } = await must(stranger, 'introspectOauthToken', { token });
  if (!active) measurements.contradiction(`A token of ${client_id} is not active.`);
  await stranger.ask('revokeOauthToken', { token, client_id, client_secret });
  const after = await must(stranger, 'introspectOauthToken', { token });
  if (after.active) measurements.contradiction(`A token of ${client_id} is active after it was revoked.`);
};

export const OAUTH_OPERATIONS: Weighed<Operation> = [[1, useTokens]];
