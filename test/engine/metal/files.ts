/** The files for network boot, built from Debian packages once for each test run. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

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
  xorriso: 'xorriso',
  'grub-mkrescue': 'grub-common',
  '/usr/lib/grub/i386-pc/modinfo.sh': 'grub-pc-bin',
  '/usr/lib/ipxe/qemu/pxe-virtio.rom': 'ipxe-qemu',
  '/usr/lib/syslinux/mbr/mbr.bin': 'syslinux-common',
};

/** Why machines cannot run here; undefined if they can. */
export function missing(): string | undefined {
  if (process.getuid?.() !== 0) return 'they need root';
  return missingPackages(NEEDED);
}

/**
 * @param needed programs or absolute paths, and the Debian packages that have them
 * @returns a text that names the packages that are missing, or undefined if none is
 */
export function missingPackages(needed: Record<string, string>): string | undefined {
  const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  const exists = (name: string) => folders.some((folder) => existsSync(resolve(folder, name)));
  const packages = Object.keys(needed).flatMap((name) => (exists(name) ? [] : [needed[name]!]));
  return packages.length ? `the Debian packages ${[...new Set(packages)].join(' ')} are missing` : undefined;
}

/** Puts a kernel, an initrd, an image for virtual media, and one system image under two names into the folder. */
export function makeNetbootFiles(folder: string): void {
  execFileSync(INSTALLER, [folder, 'linux-image-cloud-amd64'], { stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync(join(HERE, 'system.sh'), [folder, join(folder, 'debian-13.img')], { stdio: 'inherit' });
  execFileSync('gzip', ['-1', '-k', join(folder, 'debian-13.img')]);
  execFileSync('mv', [join(folder, 'debian-13.img.gz'), join(folder, 'debian-12.img.gz')]);
  execFileSync('sh', ['-c', 'sha256sum debian-* >>SHA256SUMS'], { cwd: folder });
}
