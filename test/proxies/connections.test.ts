/** The rules of docs/operate/proxies.md limit the connections of one address, and leave places to others. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
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

const LISTEN = `require('node:net').createServer(() => {}).listen(443, () => console.log('listens'))`;
/** Connects so often from an address, holds the connections, and prints how many the host has taken. */
const connecting = (address: string, count: number) => `
  const net = require('node:net');
  let [open, ended] = [0, 0];
  const tell = () => open + ended === ${count} && console.log(open);
  for (let n = 0; n < ${count}; n++)
    net.connect({ host: '10.99.0.1', port: 443, localAddress: '${address}' })
      .once('connect', () => tell(++open)).on('error', () => tell(++ended));`;

function start(namespace: string, script: string) {
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return once(child.stdout, 'data').then(([text]) => String(text).trim());
}

it.skipIf(!isPossible)('An address has at most 100 connections, and another address has its own', async () => {
  onTestFinished(() => void run(`ip netns delete ${HOST}; ip netns delete ${CALLER}`));
  run(`ip netns add ${HOST}; ip netns add ${CALLER}
    ip link add host0 netns ${HOST} type veth peer name caller0 netns ${CALLER}
    ip -n ${HOST} address add 10.99.0.1/24 dev host0; ip -n ${HOST} link set host0 up
    ip -n ${CALLER} address add 10.99.0.2/24 dev caller0; ip -n ${CALLER} address add 10.99.0.3/24 dev caller0
    ip -n ${CALLER} link set caller0 up`);
  run(`ip netns exec ${HOST} nft -f -`, RULES);
  expect(await start(HOST, LISTEN)).toBe('listens');
  expect(await start(CALLER, connecting('10.99.0.2', 150))).toBe('100');
  expect(await start(CALLER, connecting('10.99.0.3', 5))).toBe('5');
});
