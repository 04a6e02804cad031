/**
 * The image of the service for containers, from its start to the first sale. It runs only if OCI_IMAGE names a file of
 * `npm run package:oci`. buildah starts the root filesystem with the image's own user, variables and command. The network is that
 * of the tests.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';

const { OCI_IMAGE = '' } = process.env;
const [PORT, INTERNAL_PORT] = [22010, 22011];
const API = `http://127.0.0.1:${PORT}/v1`;
const TOKEN = 'a-token-of-the-scraper-with-its-length';

/** Returns the process of the service, below buildah. */
function nodeBelow(pid: number): number | undefined {
  const { stdout } = spawnSync('pgrep', ['--parent', String(pid)], { encoding: 'utf8' });
  const children = stdout.split('\n').filter(Boolean).map(Number);
  const isNode = (child: number) => /bin\/node\0\S*start\.js/.test(readFileSync(`/proc/${child}/cmdline`, 'utf8'));
  return children.find(isNode) ?? children.map(nodeBelow).find((found) => found !== undefined);
}

describe('The image for containers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'freehold-oci-'));
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
  const buildah = (...args: string[]) =>
    execFileSync('buildah', [...storage, ...args], { encoding: 'utf8', timeout: 240_000 }).trim();
  let container = '';
  let service: ChildProcess | undefined;
  let output = '';

  /** The arguments that run a command in the container, as its image configures it. */
  const running = (command: string[]) => [
    ...[...storage, 'run', '--isolation', 'chroot', '--volume', `${folder}/secrets:/run/secrets:ro`],
    ...['--env', `PORT=${PORT}`, '--env', `INTERNAL_PORT=${INTERNAL_PORT}`, '--env', 'SIMULATED_PAYMENT_SECONDS=0.1'],
    ...['--env', 'METRICS_TOKEN_FILE=/run/secrets/metrics-token', container, '--', ...command],
  ];
  const configured = () => JSON.parse(buildah('inspect', container)).OCIv1.config;
  const isHealthy = () =>
    spawnSync('buildah', running(['/usr/lib/freehold/debian/ready.sh']), { timeout: 60_000 }).status === 0;

  beforeAll(() => {
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'secrets'), { mode: 0o755 });
    writeFileSync(join(folder, 'secrets/metrics-token'), TOKEN);
    container = buildah('from', `oci-archive:${OCI_IMAGE}`);
  });
  atEnd(async () => {
    service?.kill('SIGKILL');
    if (container) buildah('rm', container);
    rmSync(folder, { recursive: true, force: true });
  });

  it('names a user without rights, a volume, two ports and a command', () => {
    expect(configured()).toMatchObject({
      User: 'freehold',
      Entrypoint: ['/usr/lib/freehold/debian/run.sh', 'start.js'],
      ExposedPorts: { '3000/tcp': {}, '3001/tcp': {} },
      Volumes: { '/var/lib/freehold': {} },
    });
    expect(buildah(...running(['id']).slice(storage.length))).toMatch(/^uid=990\(freehold\) gid=990\(freehold\)/);
  });

  it('starts as that user, becomes healthy, and reads its secrets from files', async () => {
    expect(isHealthy()).toBe(false);
    service = spawn('buildah', running(configured().Entrypoint), { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [service.stdout!, service.stderr!]) stream.on('data', (chunk) => (output += chunk));
    await eventually(async () => output.includes('Freehold is running'));
    expect(isHealthy()).toBe(true);
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect((await fetch(`http://127.0.0.1:${INTERNAL_PORT}/metrics`, { headers })).status).toBe(200);
  });

  it('sells the first server', async () => {
    let key = '';
    const call = async (path: string, body?: object) => {
      const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
      const init = body ? { method: 'POST', body: JSON.stringify(body) } : {};
      return (await fetch(API + path, { ...init, headers })).json();
    };
    key = (await call('/auth/register', { email: 'lin@example.org', password: 'a heron on the roof' })).tokens
      .access_token;
    await call('/billing/topups', { amount_usd: 50, crypto: 'BTC' });
    await eventually(async () => (await call('/account/balance')).balance_usd === 50);
    const { order_number } = await call('/servers', { service_code: 'vps-1', hostname: 'web' });
    expect(await call(`/servers/${order_number}?wait_for=running`)).toMatchObject({ status: 'running' });
  });

  it('stops at SIGTERM', async () => {
    process.kill(nodeBelow(service!.pid!)!, 'SIGTERM');
    expect((await once(service!, 'exit'))[0]).toBe(0);
  });
});
