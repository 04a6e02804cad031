/** The project of the machines on a real LXD. The driver refuses a set-up by which it could become root of the host. */
import { execFileSync } from 'node:child_process';
import { createReadStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { DriverError } from '../../provisioning/servers/drivers/driver.ts';
import type { ImageFile } from '../../provisioning/servers/drivers/image-store.ts';
import { endpointOf, send } from '../../provisioning/servers/drivers/lxc/endpoint.ts';
import { LxcDriver } from '../../provisioning/servers/drivers/lxc/lxc.ts';
import { lxcDriver } from '../../provisioning/servers/drivers/lxc/settings.ts';
import { download } from '../../provisioning/servers/images/download.ts';
import { serve, sha256 } from '../servers/images/source.ts';
import { atEnd } from '../setup/end.ts';
import { followGuide } from './guide.ts';
import { FOLDER, type Lxd, startSingleLxd } from './lxd.ts';
import { newSpec } from './machine.ts';

const PLACE = { pool: 'machines', network: 'machines', nameservers: [] };
const never = AbortSignal.timeout(600_000);
let lxd: Lxd;
atEnd(() => lxd.stop());

const lxc = (...args: string[]) => execFileSync('lxc', args, { env: { ...process.env, LXD_DIR: lxd.folder } });

describe('The certificate of the guide', () => {
  let driver: LxcDriver;
  let exported: Record<string, string>;
  beforeAll(async () => {
    lxd = await startSingleLxd('project');
    exported = followGuide('lxc project create', lxd.folder);
    driver = newDriver();
  });
  const file = (name: string) => exported[name]!;
  /** A driver that has read nothing yet. */
  const newDriver = () =>
    lxcDriver({
      ...PLACE,
      endpoints: [exported.LXC_ENDPOINTS!],
      project: exported.LXC_PROJECT!,
      tls: {
        certificateFile: file('LXC_CLIENT_CERT_FILE'),
        keyFile: file('LXC_CLIENT_KEY_FILE'),
        serverCertificateFile: file('LXC_SERVER_CERT_FILE'),
      },
      probeCommand: undefined,
    });
  const instances = async () => (await lxd.call('GET', '/1.0/instances?all-projects=true')) as unknown[];

  /** Serves a file of the folder, as an image server of the operator does. */
  const served = async (name: string): Promise<ImageFile> => {
    const file = join(FOLDER, name);
    const url = await serve(onTestFinished, (_, response) => createReadStream(file).pipe(response));
    const sum = sha256(readFileSync(file));
    return { sha256: sum, download: (signal) => download({ url, sha256: sum }, signal) };
  };
  const bring = (origin: ImageFile, more: object = {}) =>
    driver.imageStore.import({ alias: 'debian-13', virtualMachine: false, origin, fingerprint: null, ...more }, never);
  const images = async () => {
    const found = (await lxd.call('GET', '/1.0/images?recursion=1&project=freehold')) as {
      fingerprint: string;
      aliases: { name: string }[];
    }[];
    return found.map(({ fingerprint, aliases }) => [fingerprint, ...aliases.map(({ name }) => name)]);
  };

  it('brings images, moves their names to newer ones, and withdraws them', async () => {
    const script = `mkdir newer && cd newer && tar -xzf ../tiny.tar.gz && echo 2 >rootfs/etc/version && tar -czf ../newer.tar.gz *`;
    execFileSync('sh', ['-c', script], { cwd: FOLDER });
    const [old, newer] = [await served('tiny.tar.gz'), await served('newer.tar.gz')];
    expect(await bring(old)).toBe(old.sha256);
    expect(await bring(old)).toBe(old.sha256);
    expect(await images()).toEqual([[old.sha256, 'debian-13']]);
    expect((await driver.about(never)).images).toEqual(['debian-13']);
    // Another name keeps the image.
    await bring(old, { alias: 'alpine-3.22' });
    expect(await bring(newer, { fingerprint: old.sha256 })).toBe(newer.sha256);
    expect(await images()).toHaveLength(2);
    const withdraw = (alias: string, { sha256: fingerprint }: ImageFile) =>
      driver.imageStore.withdraw({ alias, fingerprint }, never);
    await withdraw('alpine-3.22', old);
    expect(await images()).toEqual([[newer.sha256, 'debian-13']]);
    for (const _ of ['once', 'and again']) await withdraw('debian-13', newer);
    expect(await images()).toEqual([]);
  });

  it('gives no name to an image that is half, another, or for machines of another type', async () => {
    const image = await served('tiny.tar.gz');
    const another = { ...image, sha256: '0'.repeat(64) };
    await expect(bring(another)).rejects.toThrow(/fingerprints don't match/);
    const half: ImageFile = {
      ...image,
      async *download(signal) {
        yield (await image.download(signal)[Symbol.asyncIterator]().next()).value;
        throw new DriverError('failed', 'The source broke off.');
      },
    };
    await expect(bring(half)).rejects.toThrow('The source broke off.');
    await expect(bring(image, { virtualMachine: true })).rejects.toMatchObject({ code: 'rejected' });
    const server = { server: 'https://127.0.0.1:9', alias: 'debian/13/cloud', sha256: null };
    await expect(bring(server as never)).rejects.toMatchObject({ code: 'failed' });
    expect(await images()).toEqual([]);
  });

  it('finishes an import whose worker was killed before the name', async () => {
    const image = await served('tiny.tar.gz');
    await bring(image);
    await lxd.call('DELETE', '/1.0/images/aliases/debian-13?project=freehold');
    const again = { ...image, download: () => expect.fail('The engine has the image already.') };
    expect(await bring(again)).toBe(image.sha256);
    expect(await images()).toEqual([[image.sha256, 'debian-13']]);
  });

  it('makes and removes machines', async () => {
    const spec = newSpec();
    await driver.check(never);
    const image = await served('tiny.tar.gz');
    await bring(image);
    expect(await driver.create(spec, never)).toMatchObject({ phase: 'present', power: 'on' });
    await driver.imageStore.withdraw({ alias: 'debian-13', fingerprint: image.sha256 }, never);
    expect(await images()).toEqual([]);
    const restarted = await driver.power(spec, 'restart', 'change', never);
    expect(restarted).toMatchObject({ phase: 'present', power: 'on', image: 'debian-13' });
    expect(await driver.destroy(spec, never)).toMatchObject({ phase: 'absent' });
  });

  it('makes no privileged container, and none with a disk of the host', async () => {
    const [certificate, key, serverCertificate] = ['CLIENT_CERT', 'CLIENT_KEY', 'SERVER_CERT'].map((name) =>
      readFileSync(file(`LXC_${name}_FILE`), 'utf8'),
    ) as [string, string, string];
    const endpoint = endpointOf(exported.LXC_ENDPOINTS!, { certificate, key, serverCertificate });
    const ask = async (project: string, body: object) => {
      const path = `/1.0/instances?project=${project}`;
      const source = { type: 'none' };
      const asked = { method: 'POST', path, body: { name: 'taken', source, ...body }, silentMs: 9000, signal: never };
      return (await send(endpoint, asked)).error;
    };
    const root = { type: 'disk', path: '/', pool: 'machines' };
    const host = { type: 'disk', path: '/host', source: '/' };
    expect(await ask('freehold', { devices: { root }, config: { 'security.privileged': 'true' } })).toMatch(
      /forbidden/,
    );
    expect(await ask('freehold', { devices: { root, host } })).toMatch(/not managed|forbidden/);
    expect(await ask('default', { devices: { root } })).toBe('not authorized');
    expect(await instances()).toEqual([]);
  });

  const refused = async (sentence: RegExp) => {
    await expect(newDriver().check(never)).rejects.toMatchObject({ code: 'rejected', message: sentence });
    const weak = newDriver();
    await expect(weak.create(newSpec(), never)).rejects.toMatchObject({ code: 'unreachable', message: sentence });
    await expect(weak.reachable('zrh', never)).rejects.toThrow();
    expect(await instances()).toEqual([]);
  };

  it.each([
    ['restricted.devices.disk', 'allow'],
    ['restricted.containers.privilege', 'allow'],
    ['restricted.containers.lowlevel', 'allow'],
    ['restricted.devices.unix-block', 'allow'],
  ])('is refused in a project with %s=%s', async (key, value) => {
    lxc('project', 'set', 'freehold', `${key}=${value}`);
    await refused(new RegExp(`lifts ${key}\\. Run: lxc project unset freehold ${key}`));
    lxc('project', 'unset', 'freehold', key);
  });

  it('is refused in a project without restrictions', async () => {
    lxc('project', 'set', 'freehold', 'restricted=false');
    await refused(/Run: lxc project set freehold restricted=true/);
    lxc('project', 'set', 'freehold', 'restricted=true');
  });

  it('gives a warning where it can take other interfaces of the host', async () => {
    lxc('project', 'set', 'freehold', 'restricted.devices.nic=allow');
    expect((await newDriver().check(never)).join()).toMatch(
      /Run: lxc project set freehold restricted.devices.nic=managed/,
    );
    lxc('project', 'unset', 'freehold', 'restricted.devices.nic');
  });

  it.each([
    ['all projects', { restricted: false, projects: [] }],
    ['another project, too', { restricted: true, projects: ['default', 'freehold'] }],
  ])('is refused if it is valid for %s', async (_name, wider) => {
    const [certificate] = (await lxd.call('GET', '/1.0/certificates?recursion=1')) as { fingerprint: string }[];
    const path = `/1.0/certificates/${certificate!.fingerprint}`;
    await lxd.call('PATCH', path, wider);
    await refused(/is not restricted to the project freehold\. Run: lxc config trust remove \w{12}/);
    await lxd.call('PATCH', path, { restricted: true, projects: ['freehold'] });
    await newDriver().check(never);
  });
});

describe('The socket of an engine', () => {
  const newDriver = (project: string) =>
    new LxcDriver({ ...PLACE, endpoints: [{ socketPath: lxd.socketPath }], project });

  it('gets a restricted project for the machines', async () => {
    await newDriver('sold').check(never);
    const { config } = (await lxd.call('GET', '/1.0/projects/sold')) as { config: Record<string, string> };
    expect(config).toMatchObject({
      'features.profiles': 'true',
      restricted: 'true',
      'restricted.devices.nic': 'managed',
    });
  });

  it.each(['default', 'sold'])('gets no new project while the project %s has machines', async (project) => {
    const spec = newSpec();
    const earlier = newDriver(project);
    await earlier.create(spec, never);
    await expect(newDriver('other').check(never)).rejects.toMatchObject({
      code: 'rejected',
      message: expect.stringContaining(`Set LXC_PROJECT=${project}.`),
    });
    await earlier.destroy(spec, never);
  });
});
