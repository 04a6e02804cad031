/** Requests of OAuth clients. */
import { expect } from 'vitest';
import type { Answer, RestClient } from '../../setup/spawn.ts';

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
export const basic = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
});
export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

export interface TestClient {
  client_id: string;
  client_secret: string;
}

export function oauthRequests(anonymous: RestClient) {
  const form = (path: string, members: Record<string, string>, headers: Record<string, string> = {}): Promise<Answer> =>
    anonymous('POST', path, new URLSearchParams(members).toString(), { ...FORM, ...headers });
  const requestToken = ({ client_id, client_secret }: TestClient, members: Record<string, string> = {}) =>
    form('/v1/oauth/token', { grant_type: 'client_credentials', client_id, client_secret, ...members });
  return {
    form,
    requestToken,
    introspect: (token: string) => form('/v1/oauth/introspect', { token }),
    newClient: async (metadata: object = {}, rest = anonymous): Promise<TestClient> => {
      const { status, body } = await rest('POST', '/v1/oauth/register', metadata);
      expect(status, JSON.stringify(body)).toBe(201);
      return body;
    },
    tokenOf: async (client: TestClient, members: Record<string, string> = {}): Promise<string> => {
      const { status, body } = await requestToken(client, members);
      expect(status, JSON.stringify(body)).toBe(200);
      return body.access_token;
    },
  };
}
