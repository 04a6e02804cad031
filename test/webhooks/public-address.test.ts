/** A customer's URL never leads to an internal address. A trap on loopback counts every connection. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { beforeAll, describe, expect, it } from 'vitest';
import { cardUrl } from '../../provisioning/agents/card.ts';
import { call, type Resolve } from '../../provisioning/outbound/call.ts';
import { AddressRules, hostOf, RefusedUrl } from '../../provisioning/outbound/public-address.ts';
import { post } from '../../provisioning/webhooks/post.ts';
import { CONTROLLER } from '../setup/certificates.ts';
import { atEnd } from '../setup/end.ts';
import { startFreehold } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';

const traps: Server[] = [];
let connections = 0;
let port = 0;

/** Traps on the same port of 127.0.0.1 and ::1. */
beforeAll(async () => {
  for (const host of ['127.0.0.1', '::1']) {
    const trap = createServer((socket) => {
      connections++;
      socket.destroy();
    }).listen(port, host);
    await once(trap, 'listening').catch(() => {});
    port ||= (trap.address() as AddressInfo).port;
    traps.push(trap);
  }
});
atEnd(() => {
  for (const trap of traps) trap.close();
  expect(connections).toBe(0);
});

/** `PORT` stands for the port of the trap. */
const HOSTILE = [
  'https://127.0.0.1:PORT/',
  'http://127.0.0.1:PORT/',
  'https://127.0.0.2:PORT/',
  'https://127.1:PORT/',
  'https://127.0.1:PORT/',
  'https://2130706433:PORT/',
  'https://0x7f000001:PORT/',
  'https://0x7f.1:PORT/',
  'https://0x7f.0x0.0x0.0x1:PORT/',
  'https://0177.0.0.1:PORT/',
  'https://017700000001:PORT/',
  'https://127.0.0.1.:PORT/',
  'https://%31%32%37.0.0.1:PORT/',
  'https://127.0.0.1:PORT/',
  'https://①②⑦.0.0.1:PORT/',
  'https://127。0。0。1:PORT/',
  'https://0:PORT/',
  'https://0.0.0.0:PORT/',
  'https://[::1]:PORT/',
  'https://[::]:PORT/',
  'https://[0:0:0:0:0:0:0:1]:PORT/',
  'https://[::ffff:127.0.0.1]:PORT/',
  'https://[::ffff:7f00:1]:PORT/',
  'https://[::127.0.0.1]:PORT/',
  'https://[64:ff9b::7f00:1]:PORT/',
  'https://[64:ff9b:1::7f00:1]:PORT/',
  'https://[2002:7f00:1::]:PORT/',
  'https://[2001:0:7f00:1::]:PORT/',
  'https://[fe80::1]:PORT/',
  'https://[fc00::1]:PORT/',
  'https://[fd00:ec2::254]:PORT/',
  'https://[fec0::1]:PORT/',
  'https://[ff02::1]:PORT/',
  'https://[100::1]:PORT/',
  'https://[2001:db8::1]:PORT/',
  'https://[3fff::1]:PORT/',
  'https://[4000::1]:PORT/',
  'https://10.0.0.1/',
  'https://172.16.0.1/',
  'https://172.31.255.255/',
  'https://192.168.1.1/',
  'https://169.254.169.254/latest/meta-data/',
  'http://169.254.169.254/latest/meta-data/',
  'https://100.64.0.1/',
  'https://100.100.100.200/',
  'https://168.63.129.16/',
  'https://192.0.0.1/',
  'https://192.0.2.1/',
  'https://198.18.0.1/',
  'https://198.51.100.1/',
  'https://203.0.113.1/',
  'https://224.0.0.1/',
  'https://255.255.255.255/',
  'https://localhost:PORT/',
  'https://LOCALHOST:PORT/',
  'https://localhost.:PORT/',
  'https://api.localhost:PORT/',
  'https://metadata.google.internal/',
  'https://printer.local/',
  'https://router.home.arpa/',
  'https://intranet/',
  'https://hidden.onion/',
  'https://user@93.184.216.34/',
  'https://user:password@93.184.216.34/',
  'https://93.184.216.34:password@127.0.0.1:PORT/',
  'http://93.184.216.34/',
  'ftp://93.184.216.34/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:PORT/',
  'javascript:alert(1)',
  'data:text/plain,x',
  '//127.0.0.1:PORT/',
  'https://',
  'https://[::1',
  'https://exa mple.com/',
  'nonsense',
  `https://93.184.216.34/${'x'.repeat(2048)}`,
];

/** Answers as a hostile nameserver does; each name is asked once or more. */
function nameserver(answers: string[][]): Resolve {
  let asked = 0;
  return async () => answers[Math.min(asked++, answers.length - 1)]!;
}
const send = (url: string, resolve: Resolve, allow: string[] = [], deny: string[] = []) =>
  post(
    { url: url.replace('PORT', String(port)), account: 'acct', headers: {}, body: '{}' },
    { rules: new AddressRules(allow, deny), resolve, timeoutSeconds: 2 },
  );
/** As the cards of agents are read. */
const read = (url: string, resolve: Resolve, allow: readonly string[] = []) =>
  call(
    {
      method: 'GET',
      url: cardUrl(url.replace('PORT', String(port))),
      account: 'acct',
      headers: {},
      answerBytesMax: 1024,
      timeoutSeconds: 2,
    },
    { rules: new AddressRules(allow), resolve },
  );
const never: Resolve = async () => {
  throw Object.assign(new Error('unknown'), { code: 'ENOTFOUND' });
};

describe('A hostile URL', () => {
  it.each(HOSTILE)('%s is never called', async (url) => {
    const { error, responseStatus } = await send(url, nameserver([['127.0.0.1']]));
    expect([error, responseStatus]).toEqual(['refused_address', null]);
    expect(await read(url, nameserver([['127.0.0.1']]))).toBe('refused_address');
    expect(connections).toBe(0);
  });

  it.each([
    ['a name that leads inside', [['127.0.0.1']]],
    ['a name of which one address leads inside', [['93.184.216.34', '127.0.0.1']]],
    ['a name of which an address is a mapped one', [['93.184.216.34', '::ffff:127.0.0.1']]],
    ['a name that leads to IPv6 of loopback', [['::1']]],
    ['a name that leads to NAT64 of loopback', [['64:ff9b::7f00:1']]],
    ['a name that leads to the metadata of a cloud', [['169.254.169.254']]],
    ['a name that answers with what is no address', [['localhost']]],
  ])('with %s is never called', async (_, answers) => {
    expect((await send('https://hooks.attacker.net:PORT/', nameserver(answers))).error).toBe('refused_address');
    expect(await read('https://hooks.attacker.net:PORT/', nameserver(answers))).toBe('refused_address');
    expect(connections).toBe(0);
  });

  it('is not called if its name changes its address after registration or between calls', async () => {
    const rebinding = nameserver([['93.184.216.34'], ['127.0.0.1'], ['93.184.216.34'], ['::1']]);
    expect(await rebinding('hooks.attacker.net')).toEqual(['93.184.216.34']);
    expect((await send('https://hooks.attacker.net:PORT/', rebinding)).error).toBe('refused_address');
    expect(connections).toBe(0);
  });

  it('is resolved once for a call, so that no second answer counts', async () => {
    let asked = 0;
    const once: Resolve = async () => (asked++ === 0 ? ['127.0.0.2'] : ['127.0.0.1']);
    // An allowed address without a listener. A second resolution of the name would reach the trap.
    expect((await send('http://hooks.attacker.net:PORT/', once, ['127.0.0.2/32'])).error).toBe('unreachable');
    expect([asked, connections]).toEqual([1, 0]);
  });

  it('is not followed if it redirects to an internal address', async () => {
    const redirecting = await startReceiver(0, '127.0.0.3');
    for (const status of [301, 302, 303, 307, 308]) {
      redirecting.answer = (response) =>
        void response.writeHead(status, { location: `http://127.0.0.1:${port}/` }).end();
      const sent = await send(`http://127.0.0.3:${redirecting.port}/`, never, ['127.0.0.3/32']);
      expect([sent.error, sent.responseStatus]).toEqual(['http_status', status]);
    }
    expect([redirecting.received.length, connections]).toEqual([5, 0]);
    await redirecting.close();
  });
});

describe('An allowed network', () => {
  it('is reached without TLS, by its own addresses only', async () => {
    const receiver = await startReceiver(0, '127.0.0.3');
    const inside = `http://127.0.0.3:${receiver.port}/`;
    expect((await send(inside, never, ['127.0.0.3/32'])).error).toBeNull();
    expect((await send(inside, never, ['127.0.0.4/32'])).error).toBe('refused_address');
    const named = `http://inside.example:${receiver.port}/`;
    expect((await send(named, nameserver([['127.0.0.3']]), ['127.0.0.0/8'])).error).toBeNull();
    expect((await send(named, nameserver([['127.0.0.3', '10.0.0.1']]), ['127.0.0.0/8'])).error).toBe('refused_address');
    await receiver.close();
  });
});

describe('A call', () => {
  it('takes equally long for a closed port, another protocol and silence, and tells them by one word', async () => {
    expect((await send('https://nobody.attacker.net/', never)).error).toBe('dns');
    const receiver = await startReceiver(0, '127.0.0.3');
    receiver.answer = () => {};
    const silent = `http://127.0.0.3:${receiver.port}/`;
    const takesAll = async (url: string) => {
      const startedAt = performance.now();
      const { error, durationMs } = await send(url, never, ['127.0.0.3/32']);
      expect([url, error, durationMs]).toEqual([url, 'unreachable', 2000]);
      expect(performance.now() - startedAt).toBeGreaterThan(1950);
    };
    // Two agents at a closed port would free the place of a third one at once.
    const takesAllOfRead = async (url: string) => {
      const startedAt = performance.now();
      expect([url, await read(url, never, ['127.0.0.3/32'])]).toEqual([url, 'unreachable']);
      expect(performance.now() - startedAt).toBeGreaterThan(1950);
    };
    const urls = [silent, silent.replace('http:', 'https:'), 'http://127.0.0.3:1024/'];
    await Promise.all(urls.flatMap((url) => [takesAll(url), takesAllOfRead(url)]));
    await receiver.close();
  });

  it('tells of a certificate that does not hold, which only a server of TLS can show', async () => {
    const server = createTlsServer(CONTROLLER).listen(0, '127.0.0.3');
    await once(server, 'listening');
    const url = `https://127.0.0.3:${(server.address() as AddressInfo).port}/`;
    expect((await send(url, never, ['127.0.0.3/32'])).error).toBe('tls');
    server.close();
  });

  it('tells its duration by a step', async () => {
    const receiver = await startReceiver(0, '127.0.0.3');
    receiver.answer = (response) => void setTimeout(() => response.writeHead(204).end(), 300);
    expect([500, 1000, 2000]).toContain(
      (await send(`http://127.0.0.3:${receiver.port}/`, never, ['127.0.0.3/32'])).durationMs,
    );
    await receiver.close();
  });
});

describe('A port', () => {
  it.each([1, 22, 25, 79, 110, 444, 993, 1023])('%i of a public address is never called', async (number) => {
    expect(() => new AddressRules().parse(`https://93.184.216.34:${number}/`)).toThrow(RefusedUrl);
    expect((await send(`http://127.0.0.3:${number}/`, never, ['127.0.0.3/32'])).error).toBe('refused_address');
  });

  it.each([80, 443, 1024, 8443, 65_535])('%i may be called', (number) => {
    expect(new AddressRules().parse(`https://93.184.216.34:${number}/`).hostname).toBe('93.184.216.34');
  });
});

describe("The operator's own networks", () => {
  const deny = ['93.184.216.0/24', '2606:2800:220::/48', '127.0.0.0/8'];

  it.each(['https://93.184.216.34/', 'https://[2606:2800:220:1::1]/', 'http://127.0.0.3:8080/'])(
    '%s is never called, even in a network that is allowed',
    async (url) => {
      expect(() => new AddressRules(['127.0.0.0/8'], deny).parse(url)).toThrow(RefusedUrl);
      const named = url.replace(/\/\/.*?(:8080)?\/$/, '//hooks.attacker.net$1/');
      const answers = nameserver([[hostOf(new URL(url))]]);
      expect((await send(named, answers, ['127.0.0.0/8'], deny)).error).toBe('refused_address');
    },
  );
});

describe('Public addresses', () => {
  it.each(['https://93.184.216.34/', 'https://[2606:2800:220:1::1]:8443/hook?a=b', 'https://example.com/'])(
    '%s may be called',
    (url) => {
      expect(new AddressRules().parse(url).href).toBe(url);
    },
  );
  it('lose the fragment, which is never sent', () => {
    expect(new AddressRules().parse('https://example.com/a#secret').href).toBe('https://example.com/a');
    expect(() => new AddressRules().parse('http://93.184.216.34/')).toThrow(RefusedUrl);
  });
});

describe('Registration', async () => {
  const { newAccount } = await startFreehold({ ROLES: 'api' });
  const account = newAccount();
  it.each(HOSTILE)('refuses %s', async (url) => {
    const { rest } = await account;
    const { status, body } = await rest('POST', '/v1/webhooks', { url: url.replace('PORT', String(port)) });
    expect(status).toBe(422);
    expect(['invalid_url', 'url_not_allowed']).toContain(body.code);
    expect(connections).toBe(0);
  });
});
