/** The file of HAProxy in docs/operate/proxies.md limits the connections of one address by itself. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { eventually } from '../setup/freehold.ts';
import { freePort } from '../setup/spawn.ts';
import { PROXIES } from './programs.ts';

const [, start] = PROXIES.find(([name]) => name === 'HAProxy') ?? [];
const MAX = 100;

it.skipIf(!start)('An address has at most 100 connections to HAProxy, and another address has its own', async () => {
  const ports = { api: await freePort(), internal: await freePort() };
  const { url } = await start!({ ports, onEnd: onTestFinished });
  const open = (localAddress: string) => {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress }).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  const held = Array.from({ length: MAX + 50 }, () => open('127.0.0.2'));
  await eventually(async () => held.filter(({ closed }) => closed).length === 50);
  const staysOpen = async (address: string) => {
    const socket = open(address);
    // HAProxy accepts a connection, and then ends it.
    await once(socket, 'connect').catch(() => {});
    await sleep(50);
    return !socket.closed;
  };
  expect([await staysOpen('127.0.0.3'), await staysOpen('127.0.0.2')]).toEqual([true, false]);
  held.find(({ closed }) => !closed)!.destroy();
  await eventually(() => staysOpen('127.0.0.2'));
});
