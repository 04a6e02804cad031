/** What machines boot from the network, made of Debian packages: once for a test run. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const HERE = import.meta.dirname;
const INSTALLER = join(HERE, '..', '..', '..', 'provisioning', 'servers', 'netboot', 'installer', 'build.sh');
/** Programs, and the Debian packages that have them. */
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

/** Why machines cannot be run here, or undefined if they can. */
export function missing(): string | undefined {
  if (process.getuid?.() !== 0) return 'they need root';
  const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  const packages = [
    ...Object.entries(NEEDED).filter(([name]) => !folders.some((folder) => existsSync(join(folder, name)))),
    ...Object.entries(FILES).filter(([file]) => !existsSync(file)),
  ].map(([, debian]) => debian);
  return packages.length ? `they need the Debian packages ${[...new Set(packages)].join(' ')}` : undefined;
}

/** Kernel, initrd, and one system under two names, in that folder. */
export function makeNetbootFiles(folder: string): void {
  execFileSync(INSTALLER, [folder, 'linux-image-cloud-amd64'], { stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync(join(HERE, 'system.sh'), [folder, join(folder, 'debian-13.img')], { stdio: 'inherit' });
  execFileSync('gzip', ['-1', '-k', join(folder, 'debian-13.img')]);
  execFileSync('mv', [join(folder, 'debian-13.img.gz'), join(folder, 'debian-12.img.gz')]);
}
