/** The answers of the service to machines in the provisioning network. A facade speaks HTTP with these. */
import { join } from 'node:path';
import { isNews, type Netboot } from './boot.ts';
import { BootFolder } from './folder.ts';
import { type Job, jobArchive } from './job.ts';
import { mediumOf } from './medium.ts';

interface Options {
  netboot: Netboot;
  /**
   * The folder with vmlinuz, initrd.img, boot.iso, and an image for each system: debian-13.img, .img.gz or .img.xz. Its
   * SHA256SUMS has a line for each of them.
   */
  folder: string;
  /** Receives internal errors. */
  onError: (fault: unknown) => void;
}

const MAC = /^[0-9a-f]{2}(?:[:-]?[0-9a-f]{2}){5}$/i;
/** Kernel arguments: a disk must not hide a part of itself (host protected area). */
const KERNEL = 'console=tty0 console=ttyS0,115200 libata.ignore_hpa=1';

/** The base in its functions is the URL of the listener, as the machine reaches it. */
export function netbootAnswers({ netboot, folder: path, onError }: Options) {
  const folder = new BootFolder(path);
  const imageOf = async ({ what, found }: Job) => (what === 'install' ? folder.image(found.image) : undefined);
  const archiveOf = async (job: Job, base: string) => jobArchive(netboot.vault, job, base, await imageOf(job));

  /** The script of the machine with that MAC address. Undefined: it is no MAC address. */
  async function script(mac: string, base: string): Promise<string | undefined> {
    if (!MAC.test(mac)) return undefined;
    const job = await netboot.byMac(macOf(mac));
    // iPXE exits to the next boot device, the disk.
    if (!job) return '#!ipxe\nexit\n';
    try {
      await folder.verify('vmlinuz', 'initrd.img');
      await imageOf(job);
    } catch (fault) {
      onError(fault);
      return '#!ipxe\necho A file is missing. The machine tries again in a minute.\nsleep 60\nreboot\n';
    }
    const files = `${base}/files`;
    return `#!ipxe
kernel ${files}/vmlinuz ${KERNEL}
initrd ${files}/initrd.img
initrd ${base}${job.path}/job.cpio
boot
`;
  }

  /** The job of a deployment, for the holder of its token. Undefined: there is none. */
  async function job(id: string, token: string, base: string) {
    const found = await netboot.byToken(id, token);
    const archive = found && (await archiveOf(found, base));
    // Only a machine that gets its whole job begins.
    if (!archive || !(await netboot.begin(found))) return undefined;
    return { size: archive.length, read: (first: number, end: number) => archive.subarray(first, end) };
  }

  /** The medium with that job. Undefined: there is none. */
  async function medium(id: string, token: string, base: string) {
    const found = await netboot.byToken(id, token);
    const archive = found && (await archiveOf(found, base));
    if (!archive) return undefined;
    await folder.verify('boot.iso');
    return (await netboot.begin(found)) ? mediumOf(join(path, 'boot.iso'), archive) : undefined;
  }

  /** Takes a report. @returns whether it is from that machine, and complete */
  const tell = async (id: string, proof: string, news: string, text: string): Promise<boolean> =>
    isNews(news) && netboot.tell(id, proof, news, text);

  return { script, job, medium, tell, file: (name: string) => folder.file(name) };
}

/** Lower case, with colons. */
const macOf = (text: string) => text.toLowerCase().replace(/[:-]/g, '').match(/../g)!.join(':');
