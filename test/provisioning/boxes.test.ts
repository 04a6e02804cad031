import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { boxesOf } from '../../provisioning/netboot/boxes.ts';
import type { Box } from '../../provisioning/servers/drivers/bmc/box.ts';
import { newFolder, removeFolder } from '../spawn.ts';

const folder = newFolder();
afterAll(() => removeFolder(folder));
const BOX: Box = {
  name: 'box-1',
  region: 'ams',
  serviceCode: 'ded-1',
  bmc: { protocol: 'ipmi', address: '10.1.0.11', user: 'u', password: 'a secret password' },
  mac: '52:54:00:00:00:01',
  disk: '/dev/nvme0n1',
  size: { vcpus: 16, memoryMb: 65_536, diskGb: 1920 },
};
const read = (content: unknown) => {
  const file = join(folder, 'boxes.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return boxesOf(file)();
};

describe('The inventory of boxes', () => {
  it('is read each time', async () => {
    expect(await read([BOX])).toEqual([BOX]);
    expect(await read([])).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['no list', BOX],
    ['no JSON', `[{"password": "a secret password"`],
    ['a protocol that there is not', [{ ...BOX, bmc: { ...BOX.bmc, protocol: 'telnet' } }]],
    ['an address that is an option', [{ ...BOX, bmc: { ...BOX.bmc, address: '-f/etc/passwd' } }]],
    ['a disk that is none', [{ ...BOX, disk: '/dev/sda fh_do=wipe' }]],
    ['a MAC that is none', [{ ...BOX, mac: 'aa' }]],
    ['a name that is none', [{ ...BOX, name: 'box 1' }]],
    ['something that it does not know', [{ ...BOX, colour: 'red' }]],
    ['two boxes of one name', [BOX, { ...BOX, mac: '52:54:00:00:00:02' }]],
    ['two boxes of one MAC', [BOX, { ...BOX, name: 'box-2' }]],
  ])('is refused with %s, and nothing secret is said', async (_, content) => {
    const error = (await read(content).catch((fault) => fault)) as Error;
    expect(error.message).toMatch(/is wrong/);
    expect(error.message).not.toContain('secret');
  });
});
