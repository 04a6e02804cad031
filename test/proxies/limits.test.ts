/** The files of nginx and HAProxy in docs/operate/proxies.md limit the connections of one address. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../setup/freehold.ts';
import { freePort } from '../setup/spawn.ts';
import { PROXIES } from './programs.ts';

const MAX = 100;

describe.each(PROXIES.filter(([name]) => name !== 'Caddy'))('%s', (_, start) => {
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
