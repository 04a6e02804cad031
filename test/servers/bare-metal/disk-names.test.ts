/** The names of disks, as the shell of the installer finds them: disks.sh with folders instead of /sys and /dev. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

const folder = newFolder();
atEnd(() => removeFolder(folder));
const SCRIPT = readFileSync('provisioning/servers/netboot/installer/disks.sh', 'utf8')
  .replaceAll('/sys/', `${folder}/sys/`)
  .replaceAll(/\/dev\/(?!null)/g, `${folder}/dev/`);

/** A disk of the machine, by the files that the kernel has about it. */
function disk(name: string, files: Record<string, string>): void {
  const at = join(folder, 'sys/block', name);
  mkdirSync(join(at, 'device'), { recursive: true });
  for (const [file, text] of Object.entries({ size: '2048', ...files })) writeFileSync(join(at, file), `${text}\n`);
}
const found = (disks: string[]) =>
  execFileSync('sh', ['-c', `mdev() { :; }; strings() { :; }\n${SCRIPT}\nfind_disks; echo "$problem"`], {
    env: { PATH: process.env.PATH, fh_disks: disks.join(' ') },
    encoding: 'utf8',
  }).trim();

const drive = { 'device/model': 'SSD 1', 'device/serial': 'S4EWNX0R' };
disk('nvme0n1', { ...drive, wwid: 'eui.01' });
disk('nvme0n2', { ...drive, wwid: 'eui.02' });
disk('nvme1n1', { ...drive, 'device/serial': 'OTHER', wwid: 'eui.03' });

it('A name that two disks have, such as the serial number of two namespaces, is refused', () => {
  expect(found(['OTHER', 'nvme-eui.01', 'nvme-eui.02'])).toBe('');
  expect(found(['nvme-SSD_1_S4EWNX0R_1', 'nvme-SSD_1_S4EWNX0R_2', 'nvme-eui.03'])).toBe('');
  expect(found(['S4EWNX0R'])).toMatch(/^Several disks have the name S4EWNX0R\. The host has: .*nvme-eui\.01 /);
  expect(found(['OTHER', 'nvme-SSD_1_S4EWNX0R'])).toMatch(/^Several disks have the name nvme-SSD_1_S4EWNX0R\. /);
  expect(found(['OTHER', 'nvme-eui.03'])).toMatch(/^nvme-eui\.03 is another name of a listed disk\. /);
});
