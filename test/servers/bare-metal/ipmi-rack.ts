/** A host that is only a folder, with OpenIPMI's simulator as its controller: real RMCP+ through the real ipmitool. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { missingPackages } from '../../engine/metal/files.ts';
import { PASSWORD, startIpmi, USER } from '../../engine/metal/machine.ts';
import { atEnd } from '../../setup/end.ts';
import { freePort, newFolder, removeFolder } from '../../setup/spawn.ts';
import type { Rack } from './room.ts';

/** Why the simulator cannot run here; undefined if it can. */
export const missing = (): string | undefined => missingPackages({ ipmi_sim: 'openipmi', ipmitool: 'ipmitool' });

export async function newIpmiRack(model: Rack): Promise<Rack> {
  const folder = newFolder();
  const port = await freePort();
  const read = (name: string) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '');
  let controller: { stop(): Promise<void> } | undefined;
  const disconnect = async () => {
    await controller?.stop();
    controller = undefined;
  };
  const connect = async () => {
    controller = await startIpmi(folder, port);
  };
  await connect();
  atEnd(async () => {
    await disconnect();
    removeFolder(folder);
  });
  return {
    box: {
      ...model.box,
      bmc: { protocol: 'ipmi', address: `127.0.0.1:${port}`, user: USER!, password: PASSWORD! },
    },
    get journal() {
      return read('journal').split('\n').filter(Boolean);
    },
    users: [],
    listsUsers: true,
    images: [],
    isOn: () => read('power') !== '',
    turnOff: () => writeFileSync(join(folder, 'power'), ''),
    ...{ connect, disconnect },
  };
}
