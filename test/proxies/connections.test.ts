/** The rules of docs/operate/proxies.md limit the connections of one address, and leave places to others. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { say } from '../setup/say.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/operate/proxies.md'), 'utf8');
const RULES = /```nft\n([\s\S]*?)```/.exec(PAGE)![1]!;
const [HOST, CALLER] = ['freehold-host', 'freehold-caller'];
const run = (line: string, input?: string) => execFileSync('sh', ['-ec', line], { input, encoding: 'utf8' });

/** Whether this user may make networks of its own here. */
const isPossible =
  spawnSync('nft', ['--version']).status === 0 &&
  spawnSync('sh', ['-c', 'ip netns add freehold-try && ip netns delete freehold-try']).status === 0;
if (!isPossible) say('Skipped: the limit of connections before a proxy. It needs root, nftables and iproute2.');

const LISTEN = `require('node:net').createServer((socket) => socket.on('error', () => {}).pipe(socket))
  .listen(443, () => console.log('listens'))`;

interface Calls {
  from: string;
  count: number;
  /** The port of the first connection. The next ones have the next ports. */
  firstPort?: number;
  /** A statement that follows when all connections are open or refused. */
  next?: string;
}

/** Connects so often from an address, holds the connections, and prints how many the host has taken. */
const connecting = ({ from, count, firstPort, next = 'console.log(open.length)' }: Calls) => `
  const net = require('node:net');
  const open = [];
  let ended = 0;
  const tell = () => { if (open.length + ended === ${count}) { ${next} } };
  for (let n = 0; n < ${count}; n++) {
    const host = '${from.includes(':') ? 'fd99::1' : '10.99.0.1'}';
    const localPort = ${firstPort ? `${firstPort} + n` : 'undefined'};
    const socket = net.connect({ host, port: 443, localAddress: '${from}', localPort })
      .once('data', () => tell(open.push(socket)))
      .on('error', () => tell(ended++));
    socket.write('x'.repeat(64));
  }`;

/** Closes the connections, and waits until the host has closed its ends. */
const CLOSING = `
  let left = open.length;
  for (const socket of open) socket.on('close', () => --left || console.log('closed')).resume().end();`;

function start(namespace: string, script: string) {
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return once(child.stdout, 'data').then(([text]) => String(text).trim());
}
const call = (calls: Calls) => start(CALLER, connecting(calls));

describe.skipIf(!isPossible)('An address before a proxy', () => {
  beforeEach(async () => {
    onTestFinished(() => void run(`ip netns delete ${HOST}; ip netns delete ${CALLER}`));
    run(`ip netns add ${HOST}; ip netns add ${CALLER}
      ip link add host0 netns ${HOST} type veth peer name caller0 netns ${CALLER}
      ip -n ${HOST} address add 10.99.0.1/24 dev host0; ip -n ${HOST} link set host0 up
      for i in 2 3; do ip -n ${CALLER} address add 10.99.0.$i/24 dev caller0; done
      ip -n ${CALLER} link set caller0 up`);
    run(`ip netns exec ${HOST} nft -f -`, RULES);
    expect(await start(HOST, LISTEN)).toBe('listens');
  });

  it('has at most 100 connections, and another address has its own', async () => {
    expect(await call({ from: '10.99.0.2', count: 150 })).toBe('100');
    expect(await call({ from: '10.99.0.3', count: 5 })).toBe('5');
  });

  it('shares its connections with its network of IPv6', async (context) => {
    const add = (space: string, address: string, device: string) =>
      spawnSync('ip', ['-n', space, 'address', 'add', `${address}/48`, 'dev', device, 'nodad']).status === 0;
    const addresses = ['fd99::2', 'fd99::3', 'fd99:0:0:1::2'];
    context.skip(!add(HOST, 'fd99::1', 'host0') || !addresses.every((address) => add(CALLER, address, 'caller0')));
    expect(await call({ from: addresses[0]!, count: 150 })).toBe('100');
    expect(await call({ from: addresses[1]!, count: 5 })).toBe('0');
    expect(await call({ from: addresses[2]!, count: 5 })).toBe('5');
  });

  it('keeps its places when others send first packets in its name', async () => {
    // The host answers a forged packet to the owner of its address, who may be silent.
    const silence = `table inet silence {
      chain input {
        type filter hook input priority filter
        tcp dport 20000-20149 drop
      }
    }`;
    run(`ip netns exec ${CALLER} nft -f -`, silence);
    const forged = connecting({ from: '10.99.0.2', count: 150, firstPort: 20_000 });
    expect(await start(CALLER, `${forged}\nsetTimeout(() => console.log('sent'), 500)`)).toBe('sent');
    expect(Number(run(`ip netns exec ${HOST} ss -Htn state syn-recv | wc -l`))).toBeGreaterThanOrEqual(100);
    expect(await call({ from: '10.99.0.2', count: 110 })).toBe('100');
  });

  it('gains no connections by ports that it has used before', async () => {
    for (const firstPort of [20_000, 20_090])
      expect(await call({ from: '10.99.0.2', count: 90, firstPort, next: CLOSING })).toBe('closed');
    expect(await call({ from: '10.99.0.2', count: 180, firstPort: 20_000 })).toBe('100');
  });
});
