/** A bare-metal host for tests: a QEMU process under the control of ipmi_sim (IPMI) or of a small Redfish service. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readFileSync, readSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { BareMetalHost } from '../../../provisioning/servers/drivers/bmc/host.ts';
import { CONTROLLER } from '../../setup/certificates.ts';
import { eventually } from '../../setup/freehold.ts';
import { freePort, newFolder, removeFolder } from '../../setup/spawn.ts';
import { startRedfish } from './redfish.ts';

const HERE = import.meta.dirname;
export const [USER, PASSWORD] = ['ADMIN', 'a password of a BMC'.replaceAll(' ', '-').slice(0, 16)];
/** The image has 64 MiB, and the seed needs some more. */
const DISK_BYTES = 80 << 20;
const DISKS = ['disk.raw', 'second.raw', 'third.raw'];
/** Their names: of udev for virtio, a bare serial number, and of udev for NVMe. */
export const DISK_NAMES = ['virtio-disk-alpha', 'disk-bravo', 'nvme-QEMU_NVMe_Ctrl_disk-charlie'];

export interface TestMachine {
  box: BareMetalHost;
  folder: string;
  sshPort: number;
  /** Power changes, oldest first: `on pxe` (network), `on disk`, `off`, `soft`. */
  journal(): string[];
  isOn(): boolean;
  /** Makes the controller unreachable until it is started again. */
  stopController(): Promise<void>;
  startController(): Promise<void>;
  /** The disks that have a byte that is not zero. */
  soiledDisks(): string[];
  soil(): void;
  ssh(keyFile: string, command: string): string;
  serial(): string;
  end(): Promise<void>;
}

export async function newMachine(protocol: 'ipmi' | 'redfish', provisioningPort: number): Promise<TestMachine> {
  const folder = newFolder();
  const [port, sshPort] = [await freePort(), await freePort()];
  const write = (name: string, text: string | number | Buffer) =>
    writeFileSync(join(folder, name), Buffer.isBuffer(text) ? text : `${text}`);
  write('port', provisioningPort);
  write('ssh', sshPort);
  for (const name of DISKS) {
    write(name, '');
    truncateSync(join(folder, name), DISK_BYTES);
  }
  const chassis = (...what: string[]) =>
    execFileSync(join(HERE, 'chassis.sh'), [folder, '0x20', ...what], { encoding: 'utf8' });
  const isOn = () => chassis('get', 'power').trim() === 'power:1';
  const read = (name: string) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '');
  const insert = async (image: string | undefined) =>
    image ? write('medium.iso', await download(image)) : rmSync(join(folder, 'medium.iso'), { force: true });
  let controller: { stop(): Promise<void> } | undefined;
  const startController = async () => {
    controller =
      protocol === 'ipmi'
        ? await startIpmi(folder, port)
        : await startRedfish({ port, user: USER, password: PASSWORD, chassis, insert, tls: CONTROLLER });
  };
  const stopController = async () => {
    await controller?.stop();
    controller = undefined;
  };
  await startController();
  return {
    box: {
      name: `box-${port}`,
      region: 'ams',
      serviceCode: 'ded-1',
      bmc: {
        protocol,
        address: protocol === 'ipmi' ? `127.0.0.1:${port}` : `https://127.0.0.1:${port}`,
        user: USER,
        password: PASSWORD,
        ...(protocol === 'redfish' && { certificate: CONTROLLER.cert }),
      },
      mac: '52:54:00:00:00:01',
      boot: protocol === 'ipmi' ? 'NETWORK' : 'MEDIUM',
      size: { vcpus: 1, memoryMb: 256, diskGb: 1 },
    },
    folder,
    sshPort,
    journal: () => read('journal').split('\n').filter(Boolean),
    isOn,
    stopController,
    startController,
    soiledDisks: () => DISKS.filter((name) => !isZero(join(folder, name))),
    soil: () => {
      for (const name of DISKS) write(name, Buffer.alloc(DISK_BYTES, 'secret of a customer '));
    },
    ssh: (keyFile, command) =>
      execFileSync(
        'ssh',
        [
          ...['-i', keyFile, '-p', String(sshPort), '-o', 'StrictHostKeyChecking=no', '-o', 'ConnectTimeout=5'],
          ...['-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR', '-o', 'IdentitiesOnly=yes'],
          ...['-o', 'BatchMode=yes', 'root@127.0.0.1', command],
        ],
        { encoding: 'utf8', timeout: 30_000, stdio: ['ignore', 'pipe', 'pipe'] },
      ).trim(),
    serial: () => read('serial.log'),
    end: async () => {
      await stopController();
      chassis('set', 'power', '0');
      removeFolder(folder);
    },
  };
}

/** Loads an image as a controller does. The host reaches this machine as 10.0.2.2, and its controller as 127.0.0.1. */
async function download(image: string): Promise<Buffer> {
  const { host, port, pathname } = new URL(image);
  const [response] = await once(get({ host: '127.0.0.1', port, path: pathname, headers: { host } }), 'response');
  if (response.statusCode !== 200) throw new Error(`The image answered ${response.statusCode}.`);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Starts OpenIPMI's simulator as the controller of the host in that folder, with real RMCP+. */
export async function startIpmi(folder: string, port: number): Promise<{ stop(): Promise<void> }> {
  const write = (name: string, lines: string[]) => writeFileSync(join(folder, name), `${lines.join('\n')}\n`);
  const auths = ['callback', 'user', 'operator', 'admin'].map(
    (level) => `allowed_auths_${level} none md2 md5 straight`,
  );
  write('lan.conf', [
    'name "bmc"',
    'set_working_mc 0x20',
    'startlan 1',
    `addr 127.0.0.1 ${port}`,
    'priv_limit admin',
    ...auths,
    'guid a123456789abcdefa123456789abcdef',
    'endlan',
    `chassis_control "${join(HERE, 'chassis.sh')} ${folder} 0x20"`,
    'user 1 true "" "test" user 10 none md2 md5 straight',
    `user 2 true "${USER}" "${PASSWORD}" admin 10 none md2 md5 straight`,
  ]);
  write('sim.emu', [
    'mc_setbmc 0x20',
    'mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr',
    'sel_enable 0x20 1000 0x0a',
    'mc_enable 0x20',
  ]);
  mkdirSync(join(folder, 'state'), { recursive: true });
  const files = ['-c', join(folder, 'lan.conf'), '-f', join(folder, 'sim.emu'), '-s', join(folder, 'state')];
  const simulator: ChildProcess = spawn('ipmi_sim', ['-n', ...files], { stdio: 'ignore' });
  await eventually(async () => ipmiAnswers(port));
  return {
    stop: async () => {
      if (simulator.exitCode !== null || simulator.signalCode) return;
      simulator.kill('SIGKILL');
      await once(simulator, 'exit');
    },
  };
}

function ipmiAnswers(port: number): boolean {
  const session = ['-I', 'lanplus', '-C', '3', '-H', '127.0.0.1', '-p', String(port), '-U', USER, '-E', '-R', '1'];
  try {
    execFileSync('ipmitool', [...session, 'mc', 'info'], {
      env: { PATH: process.env.PATH, IPMI_PASSWORD: PASSWORD },
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}

function isZero(file: string): boolean {
  const descriptor = openSync(file, 'r');
  const chunk = Buffer.alloc(1 << 20);
  for (let read = readSync(descriptor, chunk); read > 0; read = readSync(descriptor, chunk))
    if (chunk.subarray(0, read).some((byte) => byte !== 0)) return false;
  return true;
}

/** Whether an SSH server answers there. */
export const bannerAt = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1').setTimeout(1000);
    const end = (found: boolean) => {
      resolve(found);
      socket.destroy();
    };
    socket.once('data', (data) => end(data.toString().startsWith('SSH-')));
    for (const event of ['error', 'close', 'timeout']) socket.once(event, () => end(false));
  });
