/** The files of nginx and HAProxy in docs/operate/proxies.md limit the connections of one address. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import { freePort } from '../setup/spawn.ts';
import { FOR_STRANGERS } from './programs.ts';

const MAX = 100;
const MAX_OF_SITE = 1000;
/** In ten seconds. */
const RATE_MAX = 300;

describe.each(FOR_STRANGERS)('%s', (_, start) => {
  it('takes at most 100 connections of an address, over both ports, and leaves another address its own', async () => {
    const ports = { api: await freePort(), internal: await freePort() };
    const { url, plainUrl } = await start({ ports, onEnd: onTestFinished });
    const open = (localAddress: string, to = url) => {
      const port = Number(new URL(to).port);
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
      onTestFinished(() => void socket.destroy());
      return socket;
    };
    const staysOpen = async (address: string, to = url) => {
      const socket = open(address, to);
      // The proxy accepts a connection, and then ends it.
      await once(socket, 'connect').catch(() => {});
      await sleep(50);
      return !socket.closed;
    };
    const held = Array.from({ length: MAX + 50 }, (_, n) => open('127.0.0.2', n % 2 ? url : plainUrl));
    await eventually(async () => held.filter(({ closed }) => closed).length === 50);
    expect([await staysOpen('127.0.0.3'), await staysOpen('127.0.0.2')]).toEqual([true, false]);
    expect(await staysOpen('127.0.0.2', plainUrl)).toBe(false);
    held.find(({ closed }) => !closed)!.destroy();
    await eventually(() => staysOpen('127.0.0.2'));
  });
});

/** Connects often from each address, asks, and prints how often the proxy has answered. */
const CALLER = `
  const [port, connection, count, ...addresses] = process.argv.slice(1);
  const ask = (localAddress) => new Promise((done) => {
    const socket = require('node:net').connect({ port, host: '::1', localAddress }).on('error', () => {});
    socket.once('data', () => done(1)).once('close', () => done(0)).write('GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: ' + connection + '\\r\\n\\r\\n');
  });
  (async () => {
    let answered = 0;
    for (const address of addresses) for (let n = 0; n < count; n++) answered += await ask(address);
    console.log(answered);
  })();`;

/** Addresses of one /48, each of another /64, and others. */
const networks = Array.from({ length: 12 }, (_, n) => `fd99:0:0:${n + 1}::1`);
const [NEIGHBOUR, OUTSIDE] = ['fd99:0:0:1::2', 'fd99:0:1::1'];

const NAMESPACE = `freehold-proxies-${process.pid}`;
const ip = (...line: string[]) => spawnSync('ip', line).status === 0;
const inNamespace = ['-n', NAMESPACE];
/** Whether this user may make a network of its own here, with IPv6. */
function makeNamespace(): boolean {
  if (!ip('netns', 'add', NAMESPACE)) return false;
  onTestFinished(() => void ip('netns', 'delete', NAMESPACE));
  const addresses = [...networks, NEIGHBOUR, OUTSIDE];
  return (
    ip(...inNamespace, 'link', 'set', 'lo', 'up') &&
    addresses.every((address) => ip(...inNamespace, 'address', 'add', `${address}/128`, 'dev', 'lo', 'nodad'))
  );
}

describe.each(FOR_STRANGERS.filter(([name]) => name === 'HAProxy'))('%s', (_, start) => {
  it('refuses an address that opens more than 300 connections in ten seconds, and no other', async () => {
    const ports = { api: await freePort(), internal: await freePort() };
    const { plainUrl } = await start({ ports, onEnd: onTestFinished });
    const isAnswered = (localAddress: string) =>
      new Promise<boolean>((done) => {
        const asked = request(plainUrl, { agent: false, family: 4, localAddress }).end();
        asked
          .on('response', (answer) => void answer.resume().on('close', () => done(true)))
          .on('error', () => done(false));
      });
    let answered = 0;
    while (answered < 2 * RATE_MAX && (await isAnswered('127.0.0.2'))) answered++;
    expect(answered).toBeGreaterThanOrEqual(RATE_MAX);
    expect(answered).toBeLessThan(2 * RATE_MAX);
    expect(await isAnswered('127.0.0.3')).toBe(true);
    await eventually(() => isAnswered('127.0.0.2'));
  });
});

describe.each(FOR_STRANGERS)('%s over IPv6', (name, start) => {
  const begin = async (context: TestContext) => {
    if (!makeNamespace()) {
      say('Skipped: the limits of an IPv6 /64 and /48. They need root, iproute2 and IPv6.');
      context.skip();
    }
    const ports = { api: await freePort(), internal: await freePort() };
    const { plainUrl } = await start({ ports, onEnd: onTestFinished, namespace: NAMESPACE });
    return async (connection: 'keep-alive' | 'close', count: number, ...addresses: string[]) => {
      const call = [process.execPath, '-e', CALLER, new URL(plainUrl).port, connection, String(count), ...addresses];
      const caller = spawn('ip', ['netns', 'exec', NAMESPACE, ...call], { stdio: ['ignore', 'pipe', 'inherit'] });
      onTestFinished(() => void caller.kill('SIGKILL'));
      const [printed] = await once(caller.stdout, 'data');
      return Number(printed);
    };
  };

  it('takes at most 100 connections of a /64, and 1,000 of a /48', async (context) => {
    const answered = await begin(context);
    const [first = '', ...others] = networks;
    expect(await answered('keep-alive', MAX + 50, first)).toBe(MAX);
    expect(await answered('keep-alive', 5, NEIGHBOUR)).toBe(0);
    expect(await answered('keep-alive', MAX, ...others)).toBe(MAX_OF_SITE - MAX);
    expect(await answered('keep-alive', 5, OUTSIDE)).toBe(5);
  });

  it.runIf(name === 'HAProxy')(
    'refuses a /48 that opens more than 3,000 connections in ten seconds',
    async (context) => {
      const answered = await begin(context);
      const all = await Promise.all(networks.map((network) => answered('close', RATE_MAX, network)));
      const sum = all.reduce((a, b) => a + b);
      expect(sum).toBeGreaterThanOrEqual(10 * RATE_MAX);
      expect(sum).toBeLessThan(networks.length * RATE_MAX);
      expect(await answered('close', 5, OUTSIDE)).toBe(5);
    },
  );
});
