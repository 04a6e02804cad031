/** Engines whose virtual machines run under emulation. */
import { join } from 'node:path';
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
