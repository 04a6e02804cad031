/** The next steps that errors name: an endpoint over REST, a tool over MCP, an operation in GraphQL. */
import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ERRORS } from '../../entities/errors.ts';
import { readOperations } from '../../facades/compile/read.ts';
import { restTerms, toolTerms } from '../../facades/compile/terms.ts';
import { schema } from '../../schema/index.ts';
import { startFreehold } from '../setup/freehold.ts';
import { NEWEST } from './mcp/agents.ts';

const { publicUrl, newAccount } = await startFreehold();

it('An error names the next step as its caller knows it', async () => {
  const account = await newAccount();
  const order = { service_code: 'vps-1' };
  const { body } = await account.rest('POST', '/v1/servers', order);
  expect(body.detail).toBe('The price is 6 USD, and the balance 0 USD. Top up by POST /v1/billing/topups.');
  const agent = await NEWEST(new URL(`${publicUrl}/mcp`), { credential: account.accessToken });
  const { content } = await agent.call('order_server', order);
  expect(content.detail).toBe('The price is 6 USD, and the balance 0 USD. Top up by create_topup.');
  const { errors } = await account.graphql(
    'mutation { createTopup(input: { amountUsd: 30, crypto: "DOGE" }) { orderNumber } }',
  );
  expect(errors[0].message).toMatch(/ListCoins/);
});

it('An operation without a tool is an endpoint in MCP, too', () => {
  const sentence = toolTerms(readOperations(schema))(
    '{RotateOauthClientSecret} replaces it, and {CreateWebhook} makes another.',
  );
  expect(sentence).toBe(
    'POST /v1/oauth/clients/{client_id}/rotate-secret replaces it, and create_webhook makes another.',
  );
});

it('Every sentence names only operations that exist', () => {
  const names = new Set(readOperations(schema).map(({ name }) => name));
  const files = globSync('{entities,resolvers,schema,provisioning}/**/*.ts');
  const named = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(?<![$pP])\{([A-Z][a-z]+[A-Z]\w*|Login)\}/g)].map(([, name]) => name!),
  );
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((name) => !names.has(name))).toEqual([]);
});

it('The catalogue of errors has no name of an operation left', () => {
  const terms = restTerms(readOperations(schema));
  expect(
    Object.values(ERRORS)
      .map(([, detail]) => terms(detail))
      .filter((detail) => /\{[A-Z]/.test(detail)),
  ).toEqual([]);
});
