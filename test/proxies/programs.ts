/** Debian's Caddy, nginx and HAProxy, with the files of docs/operate/proxies.md. Local test runs may go without; CI has them. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOCALHOST } from '../setup/certificates.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import { freePort, newFolder, type OnEnd, removeFolder } from '../setup/spawn.ts';
import { socketsAround } from './sockets.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/operate/proxies.md'), 'utf8');
/** The blocks of a language, in the order of the page: the whole file, then the additions. */
const blocksOf = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, block]) => block!);

/** The settings of both processes, as the page has them. */
export const settingsOf = (column: 2 | 3): Record<string, string> => {
  const rows = [...PAGE.matchAll(/^\| (`[^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)];
  const valueIn = (cell: string) => /^`([^`]+)`/.exec(cell)?.[1];
  return Object.fromEntries(
    rows.flatMap((row) =>
      [...row[1]!.matchAll(/`(\w+)`/g)].map(([, name]) => [name!, valueIn(row[column]!) ?? valueIn(row[2]!)!]),
    ),
  );
};

export interface Ports {
  api: number;
  internal: number;
}

export interface RunningProxy {
  /** The URL for customers. */
  url: string;
  /** The URL without TLS. */
  plainUrl: string;
  /** The URL of the console. */
  consoleUrl: string;
  /** The certificate that clients must trust. */
  ca: string;
  /** The output and the logs of the program. */
  logs(): string;
  /** Runs the commands of the page before the second process stops, or after it has started. */
  tell(moment: 'before its stop' | 'after its start'): void;
}

export interface StartOptions {
  ports: Ports;
  onEnd: OnEnd;
  /** The address of a balancer that speaks the PROXY protocol. */
  balancer?: string;
  /** The network namespace that the program runs in. */
  namespace?: string;
}

/** A folder, the ports of the proxy, and a way to put them into the printed text. */
async function place({ ports, onEnd }: StartOptions) {
  const folder = newFolder();
  onEnd(() => removeFolder(folder));
  const [tls, plain, operators] = [await freePort(), await freePort(), await freePort()];
  const fill = (text: string, own: Record<string, string> = {}) =>
    Object.entries({
      ...{ '/etc/nginx/sites-available': folder, '/etc/ssl/private': folder, '/etc/ssl': folder },
      ...{ '/etc/haproxy': folder, '/var/log/nginx': folder, '/run/': `${folder}/` },
      ...{ ':443': `:${tls}`, ' 443': ` ${tls}`, ':8443': `:${operators}`, ' 8443': ` ${operators}` },
      ...{ ':3000': `:${ports.api}`, ':3001': `:${ports.internal}`, 'port 3001': `port ${ports.internal}` },
      ...{ ':80 ': `:${plain} `, ' 80;': ` ${plain};`, ':80;': `:${plain};`, ' 80 ': ` ${plain} ` },
      ...own,
    }).reduce((all, [printed, used]) => all.replaceAll(printed, used), text);
  const url = (scheme: string, port: number) => `${scheme}://localhost:${port}`;
  const urls = { url: url('https', tls), plainUrl: url('http', plain), consoleUrl: url('https', operators) };
  return { folder, fill, urls, plain };
}

/** Writes the certificate into the files that nginx and HAProxy read. */
function writeCertificate(folder: string): string {
  const { cert, key } = LOCALHOST;
  for (const [end, content] of Object.entries({ crt: cert, key, pem: cert + key }))
    writeFileSync(join(folder, `api.example.org.${end}`), content);
  return cert;
}

/** Starts a program, waits until it listens, and ends it with the tests. @returns its output until now */
async function run(line: string[], url: string, { onEnd, namespace }: StartOptions, env = process.env) {
  const [command = '', ...args] = namespace ? ['ip', 'netns', 'exec', namespace, ...line] : line;
  const program = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [program.stdout, program.stderr]) stream.on('data', (chunk) => (output += chunk));
  onEnd(async () => {
    if (program.exitCode === null && program.kill('SIGTERM')) await once(program, 'exit');
  });
  const port = Number(new URL(url).port);
  await eventually(async () => {
    if (program.exitCode !== null) throw new Error(`${command} ended:\n${output}`);
    return socketsAround(program.pid).some(({ isListening, localPort }) => isListening && localPort === port);
  });
  return () => output;
}

/** Debian's package libnginx-mod-stream. */
const STREAM_MODULE = '/etc/nginx/modules-enabled/50-mod-stream.conf';
const isRoot = process.getuid?.() === 0;

async function startCaddy(options: StartOptions): Promise<RunningProxy> {
  const { folder, fill, urls, plain } = await place(options);
  const [main = '', console = ''] = blocksOf('caddyfile');
  // Without these options, Caddy would use fixed ports, and install a root certificate on this machine.
  const safe = `{\n\thttp_port ${plain}\n\tadmin off\n\tskip_install_trust\n`;
  const site = `${new URL(urls.url).host} {`;
  const own = { '192.0.2.0/24': '127.0.0.1 ::1', 'api.example.org:': 'localhost:', 'api.example.org {': site };
  const file = join(folder, 'Caddyfile');
  writeFileSync(file, fill(`${main}\n${console}`, own).replace('{\n', safe));
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const command = ['caddy', 'run', '--adapter', 'caddyfile', '--config', file];
  const logs = await run(command, urls.url, options, env);
  const root = join(folder, 'caddy/pki/authorities/local/root.crt');
  await eventually(async () => existsSync(root));
  return { ...urls, ca: readFileSync(root, 'utf8'), logs, tell: () => {} };
}

async function startNginx(options: StartOptions): Promise<RunningProxy> {
  const { folder, fill, urls } = await place(options);
  const ca = writeCertificate(folder);
  const [printed = '', main = '', console = '', balancer = ''] = blocksOf('nginx');
  const own = { 'api.example.org;': 'localhost;', 'allow 192.0.2.0/24;': 'allow 127.0.0.1; allow ::1;' };
  const listens = /^ {4}listen 443 .*\n {4}listen \[::\]:443 .*\n/m;
  const stream = options.balancer
    ? printed.replace(listens, balancer.replace('192.0.2.10', options.balancer))
    : printed;
  const mine = join(folder, 'freehold');
  writeFileSync(mine, withoutIpv6(fill(`${main}\n${console}`, own)));
  // The rest of the configuration is that of Debian, with the numbers of the page.
  const debian = readFileSync('/etc/nginx/nginx.conf', 'utf8').replace(/^\s*include .*(modules|conf\.d).*$/gm, '');
  const file = join(folder, 'nginx.conf');
  const rest = debian.replace('/etc/nginx/sites-enabled/*', mine).replace(/^user/m, isRoot ? 'user' : '#user');
  const [files = '', connections = ''] = /`(worker_rlimit_nofile \d+;)`[\s\S]*?`(worker_connections \d+;)`/
    .exec(PAGE)!
    .slice(1);
  const modules = readFileSync(STREAM_MODULE, 'utf8').replace('modules/', '/usr/lib/nginx/modules/');
  const numbered = fill(rest)
    .replace(/worker_connections \d+;/, connections)
    .replace(/^worker_processes/m, `${files}\n$&`);
  writeFileSync(file, `${modules}\n${numbered}\n${withoutIpv6(fill(stream))}`);
  const output = await run(['nginx', '-c', file, '-g', 'daemon off;'], urls.url, options);
  const logs = () => output() + logFilesIn(folder);
  const [leaving = '', returning = ''] = blocksOf('sh').map((block) =>
    fill(block).replaceAll('nginx -s', `nginx -c ${file} -s`),
  );
  const tell: RunningProxy['tell'] = (moment) =>
    void execFileSync('bash', ['-ec', moment === 'before its stop' ? leaving : returning]);
  return { ...urls, ca, logs, tell };
}

async function startHaproxy(options: StartOptions): Promise<RunningProxy> {
  const { folder, fill, urls } = await place(options);
  const ca = writeCertificate(folder);
  const [main = '', console = '', balancer = ''] = blocksOf('haproxy');
  const line = balancer.replace('192.0.2.10', options.balancer ?? '');
  const site = options.balancer ? main.replace(/^ {2}bind :::443 .*\n/m, (bind) => bind + line) : main;
  const text = fill(`${site}\n${console}`, { '192.0.2.0/24': '127.0.0.1 ::1' });
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, withoutIpv6(isRoot ? text : text.replace(/^ {2}(user|group) .*\n/gm, '')));
  const logs = await run(['haproxy', '-db', '-f', file], urls.url, options);
  return { ...urls, ca, logs, tell: () => {} };
}

const hasIpv6 = existsSync('/proc/net/if_inet6') && readFileSync('/proc/net/if_inet6', 'utf8').includes(' lo');
/** Some containers have no IPv6, and programs refuse to listen there. */
const withoutIpv6 = (text: string) =>
  hasIpv6 ? text : text.replace(/^ *listen \[::\].*\n/gm, '').replace(/bind :::(\d+) v4v6/g, 'bind :$1');

const logFilesIn = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('');

const has = (command: string, argument: string) => spawnSync(command, [argument]).status === 0;

/** The programs that are here. */
export const PROXIES = (
  [
    ['Caddy', startCaddy, has('caddy', 'version')],
    ['nginx', startNginx, existsSync(STREAM_MODULE)],
    ['HAProxy', startHaproxy, has('haproxy', '-v')],
  ] as const
).filter(([name, , isHere]) => {
  if (!isHere)
    say(
      `Skipped: the guide for ${name}, because it is not here (Debian: caddy, nginx-light, libnginx-mod-stream, haproxy).`,
    );
  return isHere;
});
/** The programs that the page gives to operators who do not know their callers. */
export const FOR_STRANGERS = PROXIES.filter(([name]) => name !== 'Caddy');
