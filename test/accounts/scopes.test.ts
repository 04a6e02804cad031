/** Scopes: every endpoint with every kind of credential, generated from the table of endpoints. */
import { beforeAll, describe, expect, it } from 'vitest';
import { mintCredential } from '../../entities/secrets.ts';
import { ALL_ENDPOINTS } from '../setup/endpoints.ts';
import { startFreehold } from '../setup/freehold.ts';
import { type RestClient, restClient } from '../setup/spawn.ts';

const { db, newAccount, publicUrl } = await startFreehold({ ROLES: 'api' });

const GRANTS = {
  read: ['read'],
  servers: ['read', 'servers'],
  billing: ['read', 'billing'],
  full: ['read', 'servers', 'billing', 'full'],
} as const;
const REFUSED = {
  garbage: 'invalid_credential',
  revoked: 'revoked_credential',
  expired: 'expired_credential',
  pendingLogin: 'invalid_credential',
} as const;
/**
 * These endpoints read the Authorization header themselves, as RFC 6749, 7009 and 7662 require. A refresh ends the credential of
 * its own caller, who may repeat it.
 */
const READS_CREDENTIAL = /^\/v1\/(oauth\/(token|revoke|introspect|register)|auth\/token\/refresh)$/;

const clients = {} as Record<keyof typeof GRANTS | keyof typeof REFUSED | 'none', RestClient>;

beforeAll(async () => {
  const { rest } = await newAccount();
  const keyOf = async (scope: string) => (await rest('POST', '/v1/auth/api-keys', { name: scope, scope })).body;
  for (const scope of Object.keys(GRANTS) as (keyof typeof GRANTS)[])
    clients[scope] = restClient(publicUrl, (await keyOf(scope)).plaintext);
  const [revoked, expired] = [await keyOf('full'), await keyOf('full')];
  await rest('DELETE', `/v1/auth/api-keys/${revoked.key_id}`);
  await db.query(`update api_key set expires_at = now() - interval '1 hour' where id = $1`, [expired.key_id]);
  clients.none = restClient(publicUrl);
  clients.garbage = restClient(publicUrl, `svc_live_${'x'.repeat(38)}`);
  clients.revoked = restClient(publicUrl, revoked.plaintext);
  clients.expired = restClient(publicUrl, expired.plaintext);
  clients.pendingLogin = restClient(publicUrl, mintCredential('lt'));
});

/** A call without effect: an unknown id, or an invalid input that the service checks after the credential. */
const call = (client: keyof typeof clients, method: string, path: string) =>
  clients[client](
    method,
    path.replace(/\{\w+\}/g, 'x'),
    method === 'POST' || method === 'PATCH' ? { nonsense: 1 } : undefined,
  );

describe.each(ALL_ENDPOINTS)('%s %s (%s, %s)', (method, path, scope, availability) => {
  const allowed = (held: readonly string[]) => scope === 'public' || held.includes(scope);

  it('refuses a call without a credential, unless it is public', async () => {
    const { status, body } = await call('none', method, path);
    if (scope === 'public') expect(body.code).not.toBe('missing_credential');
    else expect([status, body.code]).toEqual([401, 'missing_credential']);
  });

  it.each(Object.entries(GRANTS))('accepts or refuses the scope %s as the table says', async (name, held) => {
    const { status, body } = await call(name as keyof typeof GRANTS, method, path);
    if (allowed(held)) {
      expect([401, 403]).not.toContain(READS_CREDENTIAL.test(path) ? 0 : status);
      if (availability === 'PLANNED') expect(body).toMatchObject({ code: 'endpoint_planned', availability });
    } else {
      expect([status, body.code, body.required_scope]).toEqual([403, 'insufficient_scope', scope]);
    }
  });

  it.each(Object.entries(REFUSED))('refuses a credential that is %s', async (name, code) => {
    if (READS_CREDENTIAL.test(path)) return expect(availability).toBe('LIVE');
    const { status, body } = await call(name as keyof typeof REFUSED, method, path);
    expect([status, body.code]).toEqual([401, code]);
  });
});
