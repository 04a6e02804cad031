/** LXD and Incus engines with a pool, a network and images. Tests run them in separate namespaces (namespace.sh). */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, createReadStream, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { eventually } from '../setup/freehold.ts';

/** run.ts makes this folder. */
export const FOLDER = process.env.ENGINE_FOLDER ?? '';
const IMAGE = join(FOLDER, 'tiny.tar.gz');

export interface Lxd {
  folder: string;
  socketPath: string;
  /** Calls the API and waits for the operation. @throws Error */
  call(method: string, path: string, body?: object): Promise<unknown>;
  /** Starts a background operation. @returns the operation */
  begin(method: string, path: string, body?: object): Promise<unknown>;
  /** Starts the engine again after a kill. */
  start(): Promise<void>;
  /** Kills the engine alone; its machines keep running. With SIGTERM it ends by itself. */
  kill(signal?: 'SIGTERM'): Promise<void>;
  /** Makes the engine hang until `thaw`: it accepts connections, and does nothing. */
  freeze(): void;
  thaw(): void;
  /** Stops the engine and removes its network, whose name other engines use, too. */
  stop(): Promise<void>;
}

/**
 * Starts an engine with its state in a folder.
 * @param within a command that runs another one, for example in a network namespace
 */
export async function startLxd(name: string, within: string[] = [], command = 'lxd'): Promise<Lxd> {
  const folder = join(FOLDER, name);
  mkdirSync(folder, { recursive: true });
  const socketPath = join(folder, 'unix.socket');
  let daemon: ChildProcess;
  const call = callerOf(socketPath);
  const start = async () => {
    const log = openSync(join(FOLDER, `${name}.log`), 'a');
    const [file, ...args] = [...within, command, '--group', 'root'];
    const env = { ...process.env, LXD_DIR: folder, INCUS_DIR: folder };
    daemon = spawn(file!, args, { stdio: ['ignore', log, log], env });
    closeSync(log);
    // The socket answers before the engine is ready.
    await eventually(
      () =>
        call('GET', '/internal/ready').then(
          () => true,
          () => false,
        ),
      240,
    );
  };
  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    const gone = once(daemon, 'exit');
    daemon.kill(signal);
    await gone;
  };
  const [freeze, thaw] = (['SIGSTOP', 'SIGCONT'] as const).map((signal) => () => void daemon.kill(signal)) as [
    () => void,
    () => void,
  ];
  await start();
  const begin: Lxd['begin'] = async (...given) => (await asked(socketPath, ...given)).metadata;
  const stop = async () => {
    if (daemon.exitCode === null && daemon.signalCode === null) await kill();
    const dnsmasq = `${folder}/networks/machines/dnsmasq.pid`;
    const script = `kill $(sed -n 's/^pid: //p' ${dnsmasq}) 2>/dev/null; ip link del machines 2>/dev/null || true`;
    execFileSync('sh', ['-c', script]);
  };
  return { folder, socketPath, call, begin, start, kill, freeze, thaw, stop };
}

/**
 * Starts the Incus of another Debian from its folder. A chroot would prevent the user namespaces of Incus.
 * @param within as for `startLxd`
 */
export function startIncus(name: string, root: string, within: string[] = []): Promise<Lxd> {
  const script = join(FOLDER, `within-${name}`);
  writeFileSync(
    script,
    `#!/bin/sh
exec unshare -m --propagation private sh -ec '
  mount --bind ${root} ${root}
  mkdir -p ${root}${FOLDER} ${root}/old
  for place in proc sys dev; do mount --rbind /$place ${root}/$place; done
  mount --rbind ${FOLDER} ${root}${FOLDER}
  mount -t tmpfs tmpfs ${root}/run
  cd ${root}
  pivot_root . old
  umount -l /old
  exec "$@"' within "$@"
`,
    { mode: 0o755 },
  );
  return startLxd(name, [...within, script], '/usr/libexec/incus/incusd').then((lxd) => prepared(lxd));
}

/**
 * Starts one server with a btrfs pool, the bridge 10.79.0.1/24, and the tiny image under image codes of the catalog.
 */
export const startSingleLxd = (name: string, codes?: string[]): Promise<Lxd> =>
  startLxd(name).then((lxd) => prepared(lxd, codes));

/** The engine that has the bridge. It must stop before another engine can take the bridge. */
let before: Lxd | undefined;

/** Gives a server a pool, the bridge and the images. */
export async function prepared(lxd: Lxd, codes = ['debian-13', 'alpine-3.22']): Promise<Lxd> {
  await before?.stop();
  before = lxd;
  await lxd.call('POST', '/1.0/storage-pools', { name: 'machines', driver: 'btrfs', config: { size: '8GiB' } });
  await lxd.call('POST', '/1.0/networks', {
    name: 'machines',
    type: 'bridge',
    config: { 'ipv4.address': '10.79.0.1/24', 'ipv4.nat': 'false', 'ipv6.address': 'none', 'dns.mode': 'none' },
  });
  if (codes.length) await importImage(lxd, codes);
  return lxd;
}

export async function importImage({ socketPath, call }: Lxd, aliases: string[], file = IMAGE): Promise<void> {
  const { fingerprint } = (await upload(socketPath, file)) as { fingerprint: string };
  for (const name of aliases) await call('POST', '/1.0/images/aliases', { name, target: fingerprint });
}

interface Answer {
  type: string;
  metadata: unknown;
  operation: string;
  error: string;
}

const callerOf =
  (socketPath: string) =>
  async (method: string, path: string, body?: object): Promise<unknown> =>
    finished(socketPath, await asked(socketPath, method, path, body), `${method} ${path}`);

async function asked(socketPath: string, method: string, path: string, body?: object): Promise<Answer> {
  const answer = await raw(socketPath, method, path, (open) => open.end(body && JSON.stringify(body)));
  if (answer.type === 'error') throw new Error(`${method} ${path}: ${answer.error}`);
  return answer;
}

const upload = async (socketPath: string, file: string) =>
  finished(
    socketPath,
    await raw(socketPath, 'POST', '/1.0/images', (open) => createReadStream(file).pipe(open)),
    'upload',
  ).then((metadata) => (metadata as { metadata: unknown }).metadata);

async function finished(socketPath: string, answer: Answer, what: string): Promise<unknown> {
  if (answer.type === 'error') throw new Error(`${what}: ${answer.error}`);
  if (answer.type !== 'async') return answer.metadata;
  const path = `${answer.operation.split('?')[0]}/wait?timeout=120`;
  const { metadata, error } = await raw(socketPath, 'GET', path, (open) => open.end());
  const { status_code, err } = (metadata ?? {}) as { status_code?: number; err?: string };
  if (status_code !== 200) throw new Error(`${what}: ${err ?? error}`);
  return metadata;
}

function raw(
  socketPath: string,
  method: string,
  path: string,
  write: (open: ReturnType<typeof request>) => unknown,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const open = request({ socketPath, method, path, agent: false }, async (response) => {
      try {
        let text = '';
        for await (const chunk of response) text += chunk;
        const answer = JSON.parse(text) as Answer;
        resolve(path === '/internal/ready' && response.statusCode !== 200 ? { ...answer, type: 'error' } : answer);
      } catch (error) {
        reject(error);
      }
    });
    open.on('error', reject);
    write(open);
  });
}

/** Makes a new key pair. @returns the file of the private key, and the public key */
export function newKey(name: string): { file: string; publicKey: string } {
  const file = join(FOLDER, `${name}.key`);
  for (const old of [file, `${file}.pub`]) rmSync(old, { force: true }); // ssh-keygen would ask before it overwrites
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', file]);
  return { file, publicKey: readFileSync(`${file}.pub`, 'utf8').trim() };
}

export const SSH_OPTIONS = [
  'IdentitiesOnly=yes',
  'StrictHostKeyChecking=no',
  'UserKnownHostsFile=/dev/null',
  'LogLevel=ERROR',
  'BatchMode=yes',
  'ConnectTimeout=3',
].flatMap((option) => ['-o', option]);

/** Logs in as root and runs a command. @returns the output, or undefined without a login */
export function ssh(address: string, keyFile: string, command: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn('ssh', ['-i', keyFile, ...SSH_OPTIONS, `root@${address}`, command], {
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 15_000,
    });
    let output = '';
    child.stdout.on('data', (data) => (output += data));
    child.on('close', (code) => resolve(code === 0 ? output.trim() : undefined));
  });
}
