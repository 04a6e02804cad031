/** The driver for dedicated servers keeps the contract, over Redfish. */
import { afterAll } from 'vitest';
import { newDatabase } from '../database.ts';
import { newRack } from '../provisioning/bmc-room.ts';
import { bmcWorld } from './bmc-world.ts';
import { describeDriver } from './contract.ts';

const ends: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});
const onEnd = (end: () => Promise<void>) => void ends.push(end);

const racks = [await newRack('box-1', 1), await newRack('box-2', 2)];
describeDriver(await bmcWorld('bmc, over Redfish', await newDatabase(onEnd), racks, onEnd));
