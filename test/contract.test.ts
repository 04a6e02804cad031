/** What is published is what is served. */
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../entities/errors.ts';
import { errorsMarkdown } from '../facades/docs.ts';
import { openapi } from '../facades/openapi.ts';
import { readOperations } from '../facades/operations.ts';
import { schema } from '../schema/index.ts';
import { startFreehold } from './freehold.ts';

const { anonymous, publicUrl } = await startFreehold({ ROLES: 'api' });

/** The endpoints of the specification that this version has, and the scope of each. */
const ENDPOINTS: [method: string, path: string, scope: string][] = [
  ['POST', '/v1/auth/register', 'public'],
  ['POST', '/v1/auth/login', 'public'],
  ['POST', '/v1/auth/login/totp', 'public'],
  ['POST', '/v1/auth/token/refresh', 'public'],
  ['GET', '/v1/auth/sessions', 'full'],
  ['DELETE', '/v1/auth/sessions/{token_id}', 'full'],
  ['POST', '/v1/auth/totp/setup', 'full'],
  ['POST', '/v1/auth/totp/enable', 'full'],
  ['POST', '/v1/auth/totp/disable', 'full'],
  ['POST', '/v1/auth/password', 'full'],
  ['POST', '/v1/auth/api-keys', 'full'],
  ['GET', '/v1/auth/api-keys', 'read'],
  ['DELETE', '/v1/auth/api-keys/{key_id}', 'full'],
  ['POST', '/v1/auth/recover', 'public'],
  ['GET', '/v1/account', 'read'],
  ['PATCH', '/v1/account', 'full'],
  ['GET', '/v1/account/balance', 'read'],
  ['GET', '/v1/account/usage', 'read'],
  ['GET', '/v1/account/audit-log', 'read'],
  ['GET', '/v1/billing/coins', 'public'],
  ['POST', '/v1/billing/topups', 'billing'],
  ['GET', '/v1/billing/topups', 'read'],
  ['GET', '/v1/billing/topups/{order_number}', 'read'],
  ['POST', '/v1/billing/topups/{order_number}/cancel', 'billing'],
  ['GET', '/v1/billing/bonus-tiers', 'public'],
  ['GET', '/v1/catalog', 'public'],
  ['GET', '/v1/catalog/vps', 'public'],
  ['GET', '/v1/catalog/dedicated', 'public'],
  ['GET', '/v1/catalog/bastions', 'public'],
  ['GET', '/v1/catalog/images', 'public'],
  ['GET', '/v1/catalog/{code}', 'public'],
  ['POST', '/v1/servers', 'servers'],
  ['GET', '/v1/servers', 'read'],
  ['GET', '/v1/servers/{order_number}', 'read'],
  ['PATCH', '/v1/servers/{order_number}', 'servers'],
  ['DELETE', '/v1/servers/{order_number}', 'servers'],
  ['POST', '/v1/ssh-keys', 'servers'],
  ['GET', '/v1/ssh-keys', 'read'],
  ['GET', '/v1/ssh-keys/{id}', 'read'],
  ['DELETE', '/v1/ssh-keys/{id}', 'servers'],
  ['POST', '/v1/oauth/register', 'public'],
  ['POST', '/v1/oauth/token', 'public'],
  ['POST', '/v1/oauth/revoke', 'public'],
  ['GET', '/v1/oauth/introspect', 'public'],
  // Beside the specification: libraries of RFC 7662 only POST.
  ['POST', '/v1/oauth/introspect', 'public'],
  ['POST', '/v1/webhooks', 'full'],
  ['GET', '/v1/webhooks', 'read'],
  ['DELETE', '/v1/webhooks/{id}', 'full'],
  ['POST', '/v1/webhooks/{id}/test', 'full'],
  ['GET', '/v1/agents/directory', 'public'],
  ['POST', '/v1/agents/directory', 'full'],
  ['GET', '/v1/transparency/canary', 'public'],
  ['GET', '/v1/transparency/peering', 'public'],
  ['GET', '/v1/transparency/status', 'public'],
];
const sorted = (rows: string[][]) => rows.map((row) => row.join(' ')).sort();

describe('The contract', () => {
  it('has the endpoints of the specification, with their scopes, in documents and in OpenAPI alike', async () => {
    const documents = readOperations(schema).flatMap(({ http, scopes }) =>
      http ? [[http.method, http.path, scopes[0] ?? 'public']] : [],
    );
    expect(sorted(documents)).toEqual(sorted(ENDPOINTS));
    const { body } = await anonymous('GET', '/v1/openapi.json');
    const described = Object.entries(body.paths).flatMap(([path, methods]) =>
      Object.entries(methods as Record<string, Record<string, string>>).map(([method, operation]) => [
        method.toUpperCase(),
        path,
        operation['x-scope']!,
      ]),
    );
    expect(sorted(described)).toEqual(sorted(ENDPOINTS));
  });

  it.each(ENDPOINTS.filter(([, , scope]) => scope !== 'public'))(
    '%s %s asks a stranger for a credential',
    async (method, path) => {
      const { status, body } = await anonymous(
        method,
        path.replace(/\{\w+\}/g, 'x'),
        method === 'POST' ? { nonsense: 1 } : undefined,
      );
      expect([status, body.code]).toEqual([401, 'missing_credential']);
    },
  );

  it('is the OpenAPI document that is committed', async () => {
    const document = JSON.stringify(openapi(readOperations(schema), 'http://localhost:3000'), null, 2);
    await expect(`${document}\n`).toMatchFileSnapshot('../docs/openapi.json');
  });

  it('is readable at /docs, with a renderer that is served from here alone', async () => {
    const page = await fetch(`${publicUrl}/docs`);
    const html = await page.text();
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'");
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, asset]) => asset!);
    expect(assets.every((asset) => asset.startsWith('/docs/'))).toBe(true);
    for (const asset of assets) expect((await fetch(publicUrl + asset)).status).toBe(200);
  });

  it('publishes the catalogue of errors, in docs/errors.md and at the address that errors name', async () => {
    await expect(errorsMarkdown()).toMatchFileSnapshot('../docs/errors.md');
    const { body } = await anonymous('GET', '/v1/account');
    const page = await (await fetch(body.type)).text();
    expect(body.type).toBe(`${publicUrl}/docs/errors#missing_credential`);
    for (const code of Object.keys(ERRORS)) expect(page).toContain(`id="${code}"`);
  });
});
