/** The warning that the service does not see its callers' addresses. */
import { request } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { ProxyWatch } from '../../../facades/http/proxies.ts';
import { startFreehold } from '../../setup/freehold.ts';

const warn = vi.spyOn(console, 'error').mockImplementation(() => {});

/** Returns the warnings about requests from these peers, to a service that trusts 10.0.0.1. */
function warningsOf(publicUrl: string, requests: { peer: string; headers?: Record<string, string> }[]): string[] {
  const warnings: string[] = [];
  const watch = new ProxyWatch({ publicUrl, trustedProxies: ['10.0.0.1'], onWarning: (one) => warnings.push(one) });
  for (const { peer, headers = {} } of requests) watch.see({ headers, socket: { remoteAddress: peer } as never });
  return warnings;
}
const many = (peer: string, headers?: Record<string, string>) => Array(100).fill({ peer, ...(headers && { headers }) });

describe('The service warns once', () => {
  it('and in the health of the gateways, of a proxy that it does not trust', async () => {
    const { operator, publicUrl } = await startFreehold();
    const gateways = async () => (await operator('{ gateways { name warning } }')).data.gateways;
    const call = (headers: Record<string, string>) =>
      new Promise((done) => request(`${publicUrl}/v1/catalog`, { headers }, (reply) => done(reply.resume())).end());
    await call({});
    expect(await gateways()).not.toContainEqual(expect.objectContaining({ name: 'public-listener' }));
    for (const name of ['x-forwarded-for', 'forwarded']) await call({ [name]: '198.51.100.7' });
    expect(await gateways()).toContainEqual({
      name: 'public-listener',
      warning: expect.stringContaining('TRUSTED_PROXY_CIDRS'),
    });
    // Other files run in the same process.
    const warnings = warn.mock.calls
      .map(([text]) => String(text))
      .filter((text) => text.includes('TRUSTED_PROXY_CIDRS'));
    expect(warnings).toEqual([expect.not.stringMatching(/127\.0|198\.51/)]);
  });

  it.each([`${'a'.repeat(56)}.onion`, `${'A'.repeat(56)}.ONION.:80`])(
    'of an onion service behind a trusted proxy: %s',
    (host) => {
      const requests = [...many('10.0.0.1', { host: 'freehold.example' }), ...many('10.0.0.1', { host })];
      const forged = many('10.0.0.1', { host, 'x-forwarded-for': '198.51.100.7' });
      expect(warningsOf('https://freehold.example', [...requests, ...forged])).toEqual([
        expect.stringContaining('ONION_LISTENER'),
      ]);
    },
  );

  it.each(['0.0.0.0/0', '::/0'])('at the start, of proxies that are everyone: %s', (network) => {
    const warnings: string[] = [];
    const trustedProxies = ['10.0.0.1', network];
    new ProxyWatch({ publicUrl: 'https://freehold.example', trustedProxies, onWarning: (one) => warnings.push(one) });
    expect(warnings).toEqual([expect.stringContaining('every address')]);
  });

  it('if all requests to a public URL come from one private address', () => {
    for (const peer of ['127.0.0.1', '::1', '::ffff:172.17.0.1', 'fd00::1'])
      expect(warningsOf('https://freehold.example', many(peer))).toEqual([expect.stringContaining('private address')]);
  });
});

describe('The service does not warn', () => {
  it.each([
    ['of a trusted proxy', 'https://freehold.example', many('10.0.0.1', { 'x-forwarded-for': '198.51.100.7' })],
    ['of a public peer', 'https://freehold.example', many('198.51.100.7')],
    [
      'of a host that a stranger names to a trusted proxy',
      'https://freehold.example',
      many('10.0.0.1', { host: `${'a'.repeat(56)}.onion`, 'x-forwarded-for': '198.51.100.7' }),
    ],
    ['of several private peers', 'https://freehold.example', [{ peer: '10.0.0.2' }, ...many('127.0.0.1')]],
    ['on the machine of a developer', 'http://localhost:3000', many('127.0.0.1')],
    ['as an onion service', `http://${'a'.repeat(56)}.onion`, many('127.0.0.1')],
    ['after few requests', 'https://freehold.example', many('127.0.0.1').slice(0, 20)],
  ])('%s', (_, publicUrl, requests) => {
    expect(warningsOf(publicUrl, requests)).toEqual([]);
  });
});
