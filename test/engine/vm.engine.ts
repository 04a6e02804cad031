/**
 * Virtual machines of the lxc driver on a real LXD, under emulation: no KVM is needed, and nothing is fast. It runs only if
 * VM_IMAGE names an image (vm/image.sh).
 */
import { join } from 'node:path';
import { describeLxc } from './lxc-contract.ts';
import { FOLDER, importImage, prepared, startLxd } from './lxd.ts';

const traits = { virtualization: 'kvm', nesting: false, portMbps: 1000 } as const;

describeLxc(
  'LXD, as a virtual machine,',
  async () => {
    const lxd = await startLxd('virtual', [join(import.meta.dirname, 'vm/within.sh'), join(FOLDER, 'virtual')]).then(
      prepared,
    );
    await importImage(lxd, ['debian-13-vm'], process.env.VM_IMAGE);
    return lxd;
  },
  {
    traits,
    size: { vcpus: 1, memoryMb: 256, diskGb: 1 },
    larger: { vcpus: 2, memoryMb: 384, diskGb: 2 },
    bootSeconds: 120,
  },
);
