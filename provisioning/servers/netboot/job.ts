/**
 * The job of a machine that boots the installer or the wiper. It is an archive, and the kernel unpacks it as /job (cpio, newc).
 * It contains the secrets of the new system. So no script and no argument of the kernel has them.
 */
import type { Vault } from '../../../entities/secrets.ts';
import { type BootingDeployment, SEED } from '../../../entities/servers/deployment.ts';
import { metaData, networkConfig, type Seed, userData, vendorData } from './seed.ts';
import { tokenOf } from './tokens.ts';

/** The room that a job gets in the image of virtual media. User data have at most 64 KiB. */
export const JOB_BYTES_MAX = 512 * 1024;

export interface Job {
  found: BootingDeployment;
  what: 'install' | 'wipe';
}

/** @param base the URL of the listener, as the machine reaches it @param image the file of the system, for an installation */
export function jobArchive(vault: Vault, { found, what }: Job, base: string, image?: { name: string; sha256: string }) {
  const settings: Record<string, string> = {
    do: what,
    base: `${base}/d/${found.id}`,
    key: tokenOf(vault, found, 'report'),
    disks: (found.disks ?? []).join(' '),
    ...(image && { image: `${base}/files/${image.name}`, sha256: image.sha256 }),
  };
  const files: Record<string, string> = {
    settings: Object.entries(settings)
      .map(([name, value]) => `fh_${name}='${value}'\n`)
      .join(''),
  };
  if (what === 'install' && found.seed) {
    const seed = JSON.parse(SEED.open(vault, found.seed, found.id)) as Seed;
    files['meta-data'] = metaData(seed, `${found.id}-${found.run}`);
    files['user-data'] = userData(seed);
    files['vendor-data'] = vendorData(seed, `${base}/d/${found.id}/${tokenOf(vault, found, 'system')}/booted`);
    files['network-config'] = networkConfig(seed, found.mac);
  }
  return archiveOf(files);
}

const [DIRECTORY, FILE] = [0o40700, 0o100600];

function archiveOf(files: Record<string, string>): Buffer {
  const entries = Object.entries(files).map(([name, text]) => entryOf(`job/${name}`, FILE, Buffer.from(text)));
  const archive = Buffer.concat([entryOf('job', DIRECTORY), ...entries, entryOf('TRAILER!!!', 0)]);
  if (archive.length > JOB_BYTES_MAX) throw new Error(`A job has ${archive.length} bytes, which is too much.`);
  return archive;
}

function entryOf(name: string, mode: number, data = Buffer.alloc(0)): Buffer {
  // Inode, mode, owner, group, links, time, size, four devices, length of the name, checksum.
  const fields = [0, mode, 0, 0, 1, 0, data.length, 0, 0, 0, 0, name.length + 1, 0];
  const head = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${name}\0`;
  return Buffer.concat([padded(Buffer.from(head)), padded(data)]);
}

/** Appends zeros up to a multiple of four. */
const padded = (data: Buffer) => Buffer.concat([data, Buffer.alloc(-data.length & 3)]);
