/** Engines whose virtual machines run under emulation. */
import { join } from 'node:path';
import type { World } from '../customer.ts';
import { FOLDER, importImage, type Lxd } from '../lxd.ts';

/** The image of vm/image.sh. */
const { VM_IMAGE } = process.env;
/** Seconds that a machine takes to boot on a busy host. */
export const BOOT_SECONDS = 120;

/** The command within which an engine emulates. @param name of the engine */
export const withinEmulation = (name: string): string[] => [
  join(import.meta.dirname, 'within.sh'),
  join(FOLDER, `${name}-emulation`),
];

/** Gives the engine the image of virtual machines. */
export async function withImage(lxd: Lxd): Promise<Lxd> {
  await importImage(lxd, ['debian-13-vm'], VM_IMAGE);
  return lxd;
}

const TIER =
  'code: "kvm-1", name: "KVM", vcpus: 1, memoryMb: 256, diskGb: 1, trafficTb: 1, priceMonthUsd: 5, virtualization: KVM';

/** Offers a tier of small virtual machines, `kvm-1`. @throws Error if the service refuses it */
export async function offerVirtual({ operator }: World): Promise<void> {
  for (const mutation of [
    `addVpsTier(input: {${TIER}}) { code }`,
    'setStock(region: "zrh", serviceCode: "kvm-1", total: 10) { total }',
  ]) {
    const { errors } = await operator(`mutation { ${mutation} }`);
    if (errors) throw new Error(`${mutation}: ${JSON.stringify(errors)}`);
  }
}
