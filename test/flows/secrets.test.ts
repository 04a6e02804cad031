/** After one use of every feature, no table and no output has a secret or the address of a caller. */
import { readFileSync } from 'node:fs';
import { Secret, TOTP } from 'otpauth';
import { expect, it } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { oauthRequests } from '../accounts/oauth/requests.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { type Answer, restClient, spawnService } from '../setup/spawn.ts';
import { callTool } from '../setup/tool.ts';

const url = await newDatabaseUrl();
const service = await spawnService({
  DATABASE_URL: url,
  SIMULATED_PAYMENT_SECONDS: '0.05',
  SIMULATED_PROVISION_SECONDS: '0.05',
});
const anonymous = restClient(service.url);

it('Neither the database nor the output has a secret that was shown or sent, or the address of a caller', async () => {
  const secrets: Record<string, string> = { idempotencyKey: 'an-idempotency-key-of-the-customer' };
  const keep = <T extends Record<string, unknown>>(found: T, ...names: string[]): T => {
    for (const name of names) secrets[`${name} ${Object.keys(secrets).length}`] = String(found[name]);
    return found;
  };
  const ok = async (asked: Promise<Answer>) => {
    const { status, body } = await asked;
    expect([200, 201], JSON.stringify(body)).toContain(status);
    return body;
  };
  const person = keep({ email: 'secrets@example.org', password: 'a heron on the roof' }, 'password');
  const { tokens } = await ok(anonymous('POST', '/v1/auth/register', person));
  keep(tokens, 'access_token', 'refresh_token');
  const renewed = await ok(anonymous('POST', '/v1/auth/token/refresh', { refresh_token: tokens.refresh_token }));
  const { access_token } = keep(renewed.tokens ?? renewed, 'access_token', 'refresh_token');
  const rest = restClient(service.url, access_token);
  const { plaintext } = keep(
    await ok(
      rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' }, { 'idempotency-key': secrets.idempotencyKey! }),
    ),
    'plaintext',
  );
  const { form, newClient } = oauthRequests(anonymous);
  const client = keep(
    { ...(await newClient({ grant_types: ['client_credentials', 'refresh_token'] }, rest)) },
    'client_secret',
  );
  const { client_id, client_secret } = client;
  keep(
    await ok(form('/v1/oauth/token', { grant_type: 'client_credentials', client_id, client_secret })),
    'access_token',
    'refresh_token',
  );
  keep(
    await ok(rest('POST', '/v1/webhooks', { url: 'https://example.org/hook', event_filter: 'canary.updated' })),
    'secret',
  );
  await ok(rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' }));
  await eventually(async () => (await rest('GET', '/v1/account/balance')).body.balance_usd >= 50);
  const server = keep(await ok(rest('POST', '/v1/servers', { service_code: 'vps-1' })), 'root_password');
  await eventually(async () => (await rest('GET', `/v1/servers/${server.order_number}`)).body.status === 'running');
  const { secret } = keep(await ok(rest('POST', '/v1/auth/totp/setup', { password: person.password })), 'secret');
  const totp_code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  const { recovery_codes } = await ok(rest('POST', '/v1/auth/totp/enable', { totp_code }));
  for (const code of recovery_codes) keep({ code }, 'code');
  const pending = keep(await ok(anonymous('POST', '/v1/auth/login', person)), 'login_token');
  await ok(
    anonymous('POST', '/v1/auth/login/totp', { login_token: pending.login_token, totp_code: recovery_codes[0] }),
  );
  await anonymous('POST', '/v1/auth/login', {
    ...person,
    password: keep({ wrong: 'a wrong password of theirs' }, 'wrong').wrong,
  });
  await callTool(service.url, undefined, 'get_balance', { access_token: plaintext });
  await anonymous('GET', `/v1/oauth/introspect?token=${plaintext}`);
  await rest('POST', '/v1/ssh-keys', {
    public_key: keep({ key: '-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXktdjEAAAAABG5vbmU' }, 'key').key,
  });

  const db = await Database.open(url);
  const tables = await db.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  const rows = await Promise.all(
    tables.map(({ name }) => db.query(`select '${name}' as of, t::text as row from ${name} as t`)),
  );
  await db.close();
  await service.stop();
  const dump = JSON.stringify(rows);
  const operator = readFileSync(`${service.dataDir}/operator-token`, 'utf8').trim();
  expect(Object.keys(secrets).length).toBeGreaterThan(20);
  for (const [name, value] of Object.entries({ ...secrets, operator })) {
    expect(value.length, name).toBeGreaterThan(5);
    const spellings = [
      value,
      Buffer.from(value).toString('hex'),
      Buffer.from(value).toString('base64').replace(/=+$/, ''),
    ];
    for (const place of [dump, service.output()])
      expect([name, spellings.filter((spelling) => place.toLowerCase().includes(spelling.toLowerCase()))]).toEqual([
        name,
        [],
      ]);
  }
  // The tables have addresses of servers, but none of callers.
  expect(dump).not.toMatch(/127\.0\.0\.1|::ffff:/);
});
