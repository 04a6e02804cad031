/** The contract of drivers, for dedicated servers over Redfish and over IPMI. */
import { expect, it } from 'vitest';
import { IpmiController } from '../../../provisioning/servers/drivers/bmc/ipmi.ts';
import { newDatabase } from '../../setup/database.ts';
import { say } from '../../setup/say.ts';
import { freePort } from '../../setup/spawn.ts';
import { codeOf, describeDriver } from '../drivers/contract.ts';
import { never } from '../drivers/patience.ts';
import { bmcWorld } from './driver-world.ts';
import { missing, newIpmiRack } from './ipmi-rack.ts';
import { newRack, type Rack } from './room.ts';

const world = async (name: string, racks: Rack[]) => bmcWorld(name, await newDatabase(), racks);
const newRacks = () => Promise.all([newRack('box-1', 1), newRack('box-2', 2)]);

describeDriver(await world('bmc, over Redfish', await newRacks()));

// Developers' machines may lack OpenIPMI.
const reason = missing();
if (reason) say(`Skipped: the contract of drivers over IPMI, because ${reason}.`);
else {
  const models = await newRacks();
  for (const { disconnect } of models) await disconnect();
  const racks = await Promise.all(models.map((model) => newIpmiRack(model)));
  const away = { ...racks[0]!.box.bmc, address: `127.0.0.1:${await freePort()}` };
  const answer = codeOf(new IpmiController({ ...racks[0]!.box, bmc: away }).power(never));
  describeDriver(await world('bmc, over IPMI', racks));
  it('An absent controller is unreachable over IPMI, too', async () => {
    expect(await answer).toBe('unreachable');
  });
}
