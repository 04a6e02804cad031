/**
 * Virtual machines of the lxc driver on a real LXD and Incus, under emulation. So it needs no KVM, and nothing is fast. It runs only
 * if VM_IMAGE names an image (image.sh). Incus also needs its QEMU in INCUS_ROOT (../incus-root.sh), and a kernel with vhost_vsock.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { say } from '../../setup/say.ts';
import { describeLxc } from '../lxc/contract.ts';
import { prepared, startIncus, startLxd } from '../lxd.ts';
import { BOOT_SECONDS, withImage, withinEmulation } from './engines.ts';

const { INCUS_ROOT = '' } = process.env;
const KIND = {
  traits: { virtualization: 'kvm', nesting: false, portMbps: 1000 },
  size: { vcpus: 1, memoryMb: 256, diskGb: 1 },
  larger: { vcpus: 2, memoryMb: 384, diskGb: 2 },
  bootSeconds: BOOT_SECONDS,
} as const;

describeLxc(
  'LXD, as a virtual machine,',
  async () => withImage(await prepared(await startLxd('virtual', withinEmulation('virtual')))),
  KIND,
);

// Incus listens as the host of virtual sockets, and does not start where the kernel refuses that.
if ([join(INCUS_ROOT, 'usr/bin/qemu-system-x86_64'), '/dev/vhost-vsock'].every(existsSync))
  describeLxc(
    'Incus, as a virtual machine,',
    async () => withImage(await startIncus('virtual-incus', INCUS_ROOT, withinEmulation('virtual-incus'))),
    KIND,
  );
else say('Skipped: virtual machines on Incus. They need QEMU in INCUS_ROOT, and /dev/vhost-vsock.');
