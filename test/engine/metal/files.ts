/** The files for network boot, built from Debian packages once for each test run. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const HERE = import.meta.dirname;
const INSTALLER = join(HERE, '..', '..', '..', 'provisioning', 'servers', 'netboot', 'installer', 'build.sh');
/** The required programs, and the Debian packages that contain them. */
const NEEDED = {
  ipmi_sim: 'openipmi',
  ipmitool: 'ipmitool',
  'qemu-system-x86_64': 'qemu-system-x86',
  sfdisk: 'fdisk',
  depmod: 'kmod',
  cpio: 'cpio',
  mcopy: 'mtools',
  'mkfs.vfat': 'dosfstools',
  syslinux: 'syslinux',
  dropbear: 'dropbear-bin',
  ssh: 'openssh-client',
  busybox: 'busybox-static',
  'apt-get': 'apt',
};
const FILES = { '/usr/lib/ipxe/qemu/pxe-virtio.rom': 'ipxe-qemu', '/usr/lib/syslinux/mbr/mbr.bin': 'syslinux-common' };

/** Why machines cannot run here; undefined if they can. */
export function missing(): string | undefined {
  if (process.getuid?.() !== 0) return 'they need root';
  const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  const packages = [
    ...Object.entries(NEEDED).filter(([name]) => !folders.some((folder) => existsSync(join(folder, name)))),
    ...Object.entries(FILES).filter(([file]) => !existsSync(file)),
  ].map(([, debian]) => debian);
  return packages.length ? `they need the Debian packages ${[...new Set(packages)].join(' ')}` : undefined;
}

/** Puts a kernel, an initrd, and one system image under two names into the folder. */
export function makeNetbootFiles(folder: string): void {
  execFileSync(INSTALLER, [folder, 'linux-image-cloud-amd64'], { stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync(join(HERE, 'system.sh'), [folder, join(folder, 'debian-13.img')], { stdio: 'inherit' });
  execFileSync('gzip', ['-1', '-k', join(folder, 'debian-13.img')]);
  execFileSync('mv', [join(folder, 'debian-13.img.gz'), join(folder, 'debian-12.img.gz')]);
}
