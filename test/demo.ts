/**
 * `npm run demo`: the whole journey against a new service, over REST, MCP and GraphQL. It exits with 0 only if the server
 * ran, the deletion worked, and the books balance.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { graphqlClient, newFolder, removeFolder, restClient, spawnService } from './setup/spawn.ts';

const began = performance.now();
let last = began;
/** Prints a finished step and its duration. */
function step(name: string, detail = '') {
  const now = performance.now();
  console.log(`${((now - last) / 1000).toFixed(2).padStart(6)} s  ${name.padEnd(44)}${detail}`);
  last = now;
}
function ensure(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

const folder = newFolder();
const service = await spawnService({ DATA_DIR: folder });
try {
  step('Start the service', service.url);
  await journey();
  console.log(
    `\nThe server ran and was deleted, and the books balance: ${((performance.now() - began) / 1000).toFixed(1)} s in all.`,
  );
} catch (error) {
  console.error(`\nThe journey failed: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  await service.stop();
  removeFolder(folder);
}

async function journey() {
  const anonymous = restClient(service.url);
  const email = `demo-${randomBytes(4).toString('hex')}@example.org`;
  const registered = await anonymous('POST', '/v1/auth/register', {
    email,
    password: randomBytes(12).toString('base64url'),
  });
  ensure(registered.status === 200, `register: ${JSON.stringify(registered.body)}`);
  step('Register (REST)', registered.body.account.id);

  const withToken = restClient(service.url, registered.body.tokens.access_token);
  const apiKey = await withToken('POST', '/v1/auth/api-keys', { name: 'demo', scope: 'servers billing' });
  ensure(apiKey.status === 200, `api key: ${JSON.stringify(apiKey.body)}`);
  step('Make an API key (REST)', `${apiKey.body.prefix}… may do: ${apiKey.body.scope}`);
  const credential: string = apiKey.body.plaintext;
  const rest = restClient(service.url, credential);

  const mcp = new Client({ name: 'demo', version: '1.0.0' });
  await mcp.connect(
    new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${credential}` } },
    }),
  );
  const tool = async (name: string, args: Record<string, unknown> = {}) => {
    const result = await mcp.callTool({ name, arguments: args });
    ensure(!result.isError, `${name}: ${JSON.stringify(result.structuredContent)}`);
    // biome-ignore lint/suspicious/noExplicitAny: the demo shows what came
    return result.structuredContent as any;
  };
  const { tools } = await mcp.listTools();
  step('Connect an MCP client', `${tools.length} tools; balance ${(await tool('get_balance')).balance_usd} USD`);

  const keyFile = join(folder, 'demo-key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'demo', '-f', keyFile]);
  const sshKey = await tool('add_ssh_key', { public_key: readFileSync(`${keyFile}.pub`, 'utf8') });
  step('Add an SSH key (MCP)', sshKey.fingerprint);

  const live = liveClient(credential);
  const topUp = await tool('create_topup', { amount_usd: 100, crypto: 'btc' });
  step('Open a top-up (MCP)', `${topUp.amount_crypto} ${topUp.crypto}`);
  await live('topUpUpdated', topUp.order_number, 'status creditedUsd', ({ status }) => status === 'CONFIRMED');
  step('Watch it confirm (GraphQL subscription)', `balance ${(await tool('get_balance')).balance_usd} USD`);

  const ordered = await rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh', hostname: 'demo' });
  ensure(ordered.status === 200, `order: ${JSON.stringify(ordered.body)}`);
  const orderNumber: string = ordered.body.order_number;
  step('Order a server (REST)', `${orderNumber}, charged ${ordered.body.charged_usd} USD`);
  await live('serverUpdated', orderNumber, 'type server { status }', ({ server }) => server.status === 'RUNNING');
  const running = await tool('get_server', { order_number: orderNumber });
  ensure(running.status === 'running' && running.ipv4, `not running: ${JSON.stringify(running)}`);
  step('Watch it run (GraphQL subscription)', `${running.ipv4}, ${running.ipv6}`);

  const deleted = await tool('cancel_server', { order_number: orderNumber, confirm: orderNumber });
  step('Delete it (MCP)', `refunded ${deleted.refunded_usd} USD`);
  await live('serverUpdated', orderNumber, 'type server { status }', ({ server }) => server.status === 'DELETED');
  ensure((await rest('GET', `/v1/servers/${orderNumber}`)).status === 404, 'the server is still there');
  step('Watch it go (GraphQL subscription)');

  const { data } = await graphqlClient(
    service.graphql,
    service.operatorToken,
  )('{ books { balanced transfers totals { name totalUsd } } }');
  ensure(data.books.balanced, `the books do not balance: ${JSON.stringify(data.books)}`);
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const sum = data.books.totals.reduce((total: number, one: any) => total + Math.round(one.totalUsd * 1e6), 0);
  ensure(sum === 0, 'the totals of the ledger do not sum up to nothing');
  step('Prove the books (GraphQL, as operator)', `${data.books.transfers} transfers`);
  await mcp.close();
}

/** Waits for a message of a subscription. */
function liveClient(credential: string) {
  const client = createClient({
    url: service.graphql.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${credential}` },
  });
  // biome-ignore lint/suspicious/noExplicitAny: as above
  return async (field: string, orderNumber: string, selection: string, hoped: (message: any) => boolean) => {
    const query = `subscription ($orderNumber: ID) { ${field}(orderNumber: $orderNumber) { ${selection} } }`;
    const patience = setTimeout(() => client.dispose(), 30_000);
    // biome-ignore lint/suspicious/noExplicitAny: as above
    for await (const { data, errors } of client.iterate<any>({ query, variables: { orderNumber } })) {
      ensure(!errors, `${field}: ${JSON.stringify(errors)}`);
      if (!hoped(data[field])) continue;
      clearTimeout(patience);
      return;
    }
    throw new Error(`${field} ended before ${orderNumber} got there`);
  };
}
