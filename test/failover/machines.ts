/** Three machines in network namespaces, each with the units of the guide. They share the disk and the processes of this one. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOCALHOST } from '../setup/certificates.ts';
import { eventually } from '../setup/freehold.ts';
import { MAIN } from '../setup/spawn.ts';
import { addressOf, environmentOf, MACHINES, type MachineName, type as typeGuide } from './guide.ts';

/** The networks of each machine: its interface, the bridge, and the addresses without their last number. */
const NETWORKS = [
  ['eth0', 'fh-public', '203.0.113'],
  ['eth1', 'fh-private', '10.7.0'],
] as const;
/** This machine, which has the customers and the operator. */
export const OUTSIDE = '203.0.113.254';

const run = (line: string) => execFileSync('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'pipe'] });
const quietly = (line: string) => {
  try {
    run(line);
  } catch {
    // Nothing was there to remove.
  }
};

/** Makes the networks and the namespaces, without those that a killed run has left. */
export function makeNetworks(): void {
  removeNetworks();
  for (const [device, bridge, prefix] of NETWORKS) {
    run(
      `ip link add ${bridge} type bridge && ip address add ${prefix}.254/24 dev ${bridge} && ip link set ${bridge} up`,
    );
    for (const [i, machine] of MACHINES.entries()) {
      const [space, port] = [`fh-${machine}`, `fh-${machine}-${device}`];
      if (device === 'eth0') run(`ip netns add ${space} && ip -n ${space} link set lo up`);
      run(
        `ip link add ${port} type veth peer name ${device} netns ${space} && ip link set ${port} master ${bridge} up`,
      );
      run(`ip -n ${space} address add ${prefix}.${i + 1}/24 dev ${device} && ip -n ${space} link set ${device} up`);
    }
  }
}

export function removeNetworks(): void {
  for (const machine of MACHINES) quietly(`ip netns del fh-${machine}`);
  for (const [device, bridge] of NETWORKS) {
    for (const machine of MACHINES) quietly(`ip link del fh-${machine}-${device}`);
    quietly(`ip link del ${bridge}`);
  }
}

/** Takes the cables of a machine out, or puts them in again. */
export function plug(machine: MachineName, isIn: boolean): void {
  for (const [device] of NETWORKS) run(`ip link set fh-${machine}-${device} ${isIn ? 'up' : 'down'}`);
}

/** A program that starts again after its death, as its unit says. */
export class Unit {
  readonly name: string;
  readonly #start: () => ChildProcess;
  readonly #pauseMs: number;
  #process: ChildProcess | undefined;
  #isOver = false;

  constructor(name: string, pauseMs: number, start: () => ChildProcess) {
    this.name = name;
    this.#start = start;
    this.#pauseMs = pauseMs;
    this.#run();
  }

  #run(): void {
    if (this.#isOver) return;
    this.#process = this.#start();
    this.#process.once('exit', () => setTimeout(() => this.#run(), this.#pauseMs));
  }

  kill(): void {
    this.#process?.kill('SIGKILL');
  }

  async end(): Promise<void> {
    this.#isOver = true;
    const running = this.#process;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    running.kill('SIGTERM');
    const late = setTimeout(() => running.kill('SIGKILL'), 10_000);
    await once(running, 'exit');
    clearTimeout(late);
  }
}

/** systemd waits so long before it starts a unit again, unless the unit says otherwise. */
const PAUSE_MS = 100;

export class Machine {
  readonly name: MachineName;
  readonly root: string;
  readonly units: Record<string, Unit> = {};
  readonly #within: string[];

  constructor(name: MachineName, folder: string) {
    this.name = name;
    this.root = join(folder, name);
    this.#within = ['ip', 'netns', 'exec', `fh-${name}`];
    const folders = ['default', 'patroni', 'haproxy', 'keepalived', 'pgbouncer', 'redis', 'systemd/system'];
    for (const one of folders) mkdirSync(join(this.root, 'etc', one), { recursive: true });
    for (const one of ['lib/etcd', 'lib/postgresql', 'run/postgresql', 'log'])
      mkdirSync(join(this.root, 'var', one), { recursive: true });
    run(`chown postgres ${this.root}/var/lib/postgresql ${this.root}/var/run/postgresql`);
    writeFileSync(join(this.root, 'etc/haproxy/api.example.org.pem'), LOCALHOST.cert + LOCALHOST.key);
  }

  /** Types the blocks of the guide that name a text. */
  type(naming: string): void {
    typeGuide(this.name, naming, this.root, this.#within);
  }

  #start(unit: string, command: string[], { user = '', env = {}, pauseMs = PAUSE_MS } = {}): void {
    const log = openSync(this.log(unit), 'a');
    const as = user ? ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups'] : [];
    const [program = '', ...args] = [...this.#within, ...as, ...command];
    const start = () =>
      spawn(program, args, {
        cwd: this.root,
        env: { PATH: process.env.PATH, ...env },
        stdio: ['ignore', log, log],
      });
    this.units[unit] = new Unit(`${unit} of ${this.name}`, pauseMs, start);
  }

  log = (unit: string): string => join(this.root, 'var/log', unit);

  startEtcd(): void {
    this.type('etc/default/etcd');
    this.#start('etcd', ['etcd'], { env: environmentOf(join(this.root, 'etc/default/etcd')) });
  }

  startPatroni(): void {
    this.type('config.yml');
    this.#start('patroni', ['patroni', `${this.root}/etc/patroni/config.yml`], { user: 'postgres' });
  }

  startRedis(): void {
    this.type('redis.conf');
    this.#start('redis', ['redis-server', `${this.root}/etc/redis/redis.conf`]);
  }

  startProxies(): void {
    for (const naming of ['haproxy.cfg', 'keepalived.conf', 'pgbouncer.ini']) this.type(naming);
    const [etc, variable] = [`${this.root}/etc`, `${this.root}/var/run`];
    this.#start('haproxy', ['haproxy', '-db', '-f', `${etc}/haproxy/haproxy.cfg`]);
    const pids = ['pid', 'vrrp_pid', 'checkers_pid'].map((kind) => `--${kind}=${variable}/keepalived.${kind}`);
    const file = `--use-file=${etc}/keepalived/keepalived.conf`;
    this.#start('keepalived', ['keepalived', '--dont-fork', '--log-console', file, ...pids]);
    this.#start('pgbouncer', ['pgbouncer', `${etc}/pgbouncer/pgbouncer.ini`], { user: 'postgres' });
  }

  /** Starts the API process and the worker. */
  startService(settings: Record<string, string>): void {
    this.type('freehold.env');
    const of = (file: string) => environmentOf(join(this.root, 'etc/freehold', file));
    for (const role of ['api', 'worker']) {
      const env = { ...of('freehold.env'), ...of(`${role}.env`), ...settings };
      this.#start(role, [process.execPath, MAIN], { env, pauseMs: 1_000 });
    }
  }

  /** Kills the server of PostgreSQL, and leaves Patroni. */
  killPostgres(): void {
    const file = join(this.root, 'var/lib/postgresql/15/freehold/postmaster.pid');
    process.kill(Number(readFileSync(file, 'utf8').split('\n')[0]), 'SIGKILL');
  }

  async end(): Promise<void> {
    // Patroni stops its PostgreSQL, and needs etcd for that.
    const { etcd, patroni, ...others } = this.units;
    await Promise.all(Object.values(others).map((unit) => unit.end()));
    await patroni?.end();
    await etcd?.end();
    quietly(`kill -9 $(head -n 1 ${this.root}/var/lib/postgresql/15/freehold/postmaster.pid)`);
  }
}

interface Member {
  name: MachineName;
  role: string;
  state: string;
}

/** Asks Patroni for its members. */
async function members(): Promise<Member[]> {
  for (const machine of ['a', 'b'] as const) {
    const answer = await fetch(`http://${addressOf(machine)}:8008/cluster`, {
      signal: AbortSignal.timeout(1_000),
    }).catch(() => undefined);
    const body = (await answer?.json().catch(() => undefined)) as { members?: Member[] } | undefined;
    if (body?.members) return body.members;
  }
  return [];
}

/** Waits for a primary, and unless `alone` for a standby with each of its commits. @returns the machine of the primary */
export const primary = (alone = false): Promise<MachineName> =>
  eventually(async () => {
    const all = await members();
    const leader = all.find(({ role, state }) => role === 'leader' && state === 'running');
    return leader && (alone || all.some(({ role }) => role === 'sync_standby')) ? leader.name : undefined;
  });
