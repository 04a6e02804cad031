/**
 * The Debian package in a real Debian: from the installation to the first sale, through an upgrade, to the purge. It runs
 * only if DEBIAN_PACKAGE names a file of `npm run package:deb`, and DEBIAN_IMAGE an image (debian-image.sh).
 */
import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import { FOLDER, importImage, type Lxd, startSingleLxd } from './lxd.ts';

const API = 'http://127.0.0.1:13000';
const INTERNAL = 'http://127.0.0.1:13001';
const TOKEN = 'a-token-of-the-scraper-with-its-length';
const { DEBIAN_PACKAGE = '', DEBIAN_IMAGE } = process.env;

describe('The Debian package', () => {
  let lxd: Lxd;
  atEnd(() => lxd?.stop());

  const lxc = async (...args: string[]) => {
    const env = { ...process.env, LXD_DIR: lxd.folder, HOME: FOLDER };
    const running = promisify(execFile)('lxc', args, { env, timeout: 240_000 });
    running.child.stdin?.end(); // `lxc launch` reads it to its end
    return (await running).stdout;
  };
  /** Runs lines of a shell as root of the Debian. @returns their output */
  const run = (script: string) => lxc('exec', 'box', '--', 'sh', '-ec', script);
  const isReady = (url = INTERNAL) =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  const install = async (file: string) => {
    await lxc('file', 'push', file, 'box/root/freehold.deb');
    return run('apt-get install -y /root/freehold.deb 2>&1');
  };
  const key: { value?: string } = {};
  const call = async (path: string, body?: object) => {
    const headers = {
      'content-type': 'application/json',
      ...(key.value && { authorization: `Bearer ${key.value}` }),
    };
    const init = body ? { method: 'POST', body: JSON.stringify(body) } : {};
    const answer = await fetch(`${API}/v1${path}`, { ...init, headers });
    return answer.json();
  };

  beforeAll(async () => {
    lxd = await startSingleLxd('package', []);
    await importImage(lxd, ['debian'], DEBIAN_IMAGE);
    await lxc('launch', 'debian', 'box', '--storage', 'machines', '--config', 'security.nesting=true');
    for (const port of [3000, 3001]) {
      const ends = [`listen=tcp:127.0.0.1:1${port}`, `connect=tcp:127.0.0.1:${port}`];
      await lxc('config', 'device', 'add', 'box', `port-${port}`, 'proxy', ...ends);
    }
    await eventually(() => run('[ -d /run/systemd/system ]; echo up').catch(() => undefined));
    await run('systemctl mask --now systemd-networkd-wait-online 2>&1'); // there is no network to wait for
  });

  it('installs without a network, and starts nothing before its configuration', async () => {
    expect(await install(DEBIAN_PACKAGE)).toContain('systemctl enable --now freehold');
    expect(await run('systemctl is-active freehold || true')).toBe('inactive\n');
  });

  it('starts with the edited file and the secrets of its credentials', async () => {
    await run(`echo PUBLIC_URL=https://api.example.org >>/etc/freehold/freehold.env
      echo ${TOKEN} >/etc/freehold/credentials/METRICS_TOKEN
      touch /etc/freehold/credentials/METRICS_TOKEN~; systemctl enable --now freehold 2>&1`);
    await eventually(isReady);
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect((await fetch(`${INTERNAL}/metrics`, { headers })).status).toBe(200);
    expect(await run('journalctl -u freehold -o cat')).toContain('Freehold is running');
    expect(await run('stat -c "%U %a" /var/lib/freehold')).toBe('freehold 700\n');
  });

  it('has an exposure of at most 2.0 by systemd-analyze security', async () => {
    const shown = await run('systemd-analyze security --no-pager freehold.service');
    const [, exposure] = /exposure level for freehold.service: ([\d.]+)/.exec(shown)!;
    say(`exposure ${exposure}`);
    expect(Number(exposure)).toBeLessThanOrEqual(2);
  });

  it('sells the first server', async () => {
    key.value = (
      await call('/auth/register', { email: 'lin@example.org', password: 'a heron on the roof' })
    ).tokens.access_token;
    await call('/billing/topups', { amount_usd: 50, crypto: 'BTC' });
    await eventually(async () => (await call('/account/balance')).balance_usd === 50);
    const { order_number } = await call('/servers', { service_code: 'vps-1', hostname: 'web' });
    expect(await call(`/servers/${order_number}?wait_for=running`)).toMatchObject({ status: 'running' });
  });

  it('exports and proves the records by freehold-admin, while it runs', async () => {
    expect(await run('freehold-admin export before.age')).toContain('/var/lib/freehold/before.age has ');
    expect(await run('freehold-admin import --check before.age')).toBeTruthy();
    expect(await run('freehold-admin verify')).toContain('Database ');
  });

  it('upgrades under calls without an answer 5xx, and keeps the sale', async () => {
    const newer = join(FOLDER, 'newer');
    execFileSync('dpkg-deb', ['--raw-extract', DEBIAN_PACKAGE, newer]);
    execFileSync('sed', ['-i', 's/^Version: .*/&+newer/', join(newer, 'DEBIAN/control')]);
    execFileSync('dpkg-deb', ['--root-owner-group', '-Znone', '--build', newer, `${newer}.deb`]);
    const before = await run('systemctl show -p MainPID freehold');
    const calls = startCalls();
    await install(`${newer}.deb`);
    await eventually(isReady);
    const { answered, failed, refused, gapMs } = await calls.stop();
    say(`upgrade: ${answered} calls answered, ${failed} with 5xx, ${refused} refused, no answer for ${gapMs} ms`);
    expect(failed).toBe(0);
    expect(answered).toBeGreaterThan(10);
    expect(await run('systemctl show -p MainPID freehold')).not.toBe(before);
    expect(await run('dpkg -s freehold')).toMatch(/^Version: .*\+newer$/m);
    expect(await run('cat /etc/freehold/freehold.env')).toContain('PUBLIC_URL=https://api.example.org');
    expect((await call('/servers')).data).toMatchObject([{ hostname: 'web', status: 'running' }]);
  });

  /** Calls the API without a pause, until the end. */
  function startCalls() {
    const counts = { answered: 0, failed: 0, refused: 0, gapMs: 0 };
    let ended = false;
    const calling = (async () => {
      for (let last = performance.now(); !ended; await new Promise((resume) => setTimeout(resume, 20))) {
        const status = await fetch(`${API}/v1/catalog/vps`).then(
          (answer) => answer.text().then(() => answer.status),
          () => undefined,
        );
        if (status === undefined) counts.refused++;
        else if (status >= 500) counts.failed++;
        else {
          counts.answered++;
          counts.gapMs = Math.max(counts.gapMs, Math.round(performance.now() - last));
          last = performance.now();
        }
      }
    })();
    const stop = async () => {
      ended = true;
      await calling;
      return counts;
    };
    return { stop };
  }

  it('leaves with a purge, but for the data and the secrets of the operator', async () => {
    expect(await run('apt-get purge -y freehold 2>&1')).toContain('Your data stays in /var/lib/freehold');
    expect(await isReady()).toBe(false);
    const left = await run('ls -d /usr/lib/freehold /etc/freehold/* /var/lib/freehold 2>/dev/null || true');
    expect(left.trim().split('\n')).toEqual(['/etc/freehold/credentials', '/var/lib/freehold']);
    expect(await run('ls /etc/freehold/credentials; systemctl is-enabled freehold 2>&1 || true')).toMatch(
      /^METRICS_TOKEN\nMETRICS_TOKEN~\n.*(not-found|No such file)/,
    );
    await run('mv /var/lib/freehold/secret-key /var/lib/freehold/before.age /root');
    await run('rm -rf /var/lib/freehold /etc/freehold && deluser --quiet --system freehold');
  });

  it('comes back from an archive and SECRET_KEY', async () => {
    await install(DEBIAN_PACKAGE);
    await run(`install -m 600 /root/secret-key /etc/freehold/credentials/SECRET_KEY
      install -o freehold -g freehold -m 600 /root/before.age /var/lib/freehold
      freehold-admin import before.age; systemctl start freehold`);
    await eventually(isReady);
    expect((await call('/servers')).data).toMatchObject([{ hostname: 'web' }]);
  });
});
