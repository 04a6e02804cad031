/** Slow callers, and GraphQL documents above the limits. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../setup/freehold.ts';

const { anonymous, graphqlUrl, newAccount, operator, publicUrl } = await startFreehold({ ROLES: 'api' });
const { hostname, port } = new URL(publicUrl);

async function slowly(text: string): Promise<Socket> {
  const socket = connect(Number(port), hostname).on('error', () => {});
  await once(socket, 'connect');
  socket.resume().write(text);
  const drip = setInterval(() => socket.writable && socket.write('x'), 1_000);
  socket.once('close', () => clearInterval(drip));
  return socket;
}

describe('Callers who send a byte each second', () => {
  it('are disconnected, during headers and bodies, while the service answers others', async () => {
    const head = 'POST /v1/auth/login HTTP/1.1\r\nhost: x\r\n';
    const body = `${head}content-type: application/json\r\ncontent-length: 100000\r\n\r\n{`;
    const sockets = await Promise.all(Array.from({ length: 200 }, (_, i) => slowly(i % 2 ? body : `${head}x-slow: `)));
    expect((await anonymous('GET', '/v1/catalog/vps')).status).toBe(200);
    await eventually(async () => sockets.every(({ closed }) => closed), 50);
    expect((await anonymous('GET', '/v1/catalog/vps')).status).toBe(200);
  });
});

describe('A GraphQL document', () => {
  it.each([
    ['of 300 levels', `{ servers { data ${'{ tier '.repeat(300)}{ name }${' }'.repeat(300)} } }`],
    [
      'of introspection within introspection',
      `{ __schema { types ${'{ fields { type '.repeat(30)}{ name }${' } }'.repeat(30)} } }`,
    ],
    [
      'of lists within lists of introspection',
      `{ __type(name: "Query") ${'{ fields { type { interfaces '.repeat(20)}{ name }${' } } }'.repeat(20)} }`,
    ],
    ['of ten thousand fields', `{ ${Array.from({ length: 10_000 }, (_, i) => `a${i}: __typename`).join(' ')} }`],
  ])('%s is refused', async (_, query) => {
    const { data, errors } = await operator(query);
    expect(data).toBeFalsy();
    expect(errors.length).toBeGreaterThan(0);
  });

  it('may not come in a batch', async () => {
    const { accessToken } = await newAccount();
    const response = await fetch(graphqlUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${accessToken}` },
      body: JSON.stringify([{ query: '{ account { id } }' }, { query: '{ account { id } }' }]),
    });
    const text = await response.text();
    expect(text).toContain('errors');
    expect(text).not.toContain('acct_');
  });
});
