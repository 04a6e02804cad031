/** Controllers: the users and cipher suites of IPMI, and the number of them that a look asks at once. */
import { afterAll, describe, expect, it } from 'vitest';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import type { Controller } from '../../../provisioning/servers/drivers/bmc/controller.ts';
import { IpmiController } from '../../../provisioning/servers/drivers/bmc/ipmi.ts';
import { disableNewUsers, usersOf } from '../../../provisioning/servers/drivers/bmc/users.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { newDatabase } from '../../setup/database.ts';
import { VAULT } from '../../setup/vault.ts';
import { missing, newIpmiRack } from './ipmi-rack.ts';
import { NEVER, newRack } from './room.ts';

const db = await newDatabase(afterAll);

describe('A look at 500 hosts', () => {
  it('asks 16 controllers at once, although some of them hang', async () => {
    const { box, disconnect } = await newRack('box-1', 1);
    await disconnect();
    let now = 0;
    let most = 0;
    const asked = new Set<string>();
    const driver = new BmcDriver({
      inventory: async () => Array.from({ length: 500 }, (_, index) => ({ ...box, name: `box-${index}` })),
      store: new Deployments(db, VAULT),
      controller: ({ name }) =>
        ({
          power: async () => {
            asked.add(name);
            most = Math.max(most, ++now);
            await new Promise((done) => setTimeout(done, name.endsWith('7') ? 20 : 1));
            now--;
            return 'on';
          },
        }) as unknown as Controller,
    });
    const hosts = await driver.capacity(NEVER);
    expect(hosts.map(({ name }) => name)).toEqual(Array.from({ length: 500 }, (_, index) => `box-${index}`));
    expect([asked.size, most]).toEqual([500, 16]);
  });
});

// Developers' machines may lack OpenIPMI.
describe.skipIf(missing())('A controller with IPMI', () => {
  it('works with suite 3 if it refuses suite 17, and loses only its new users', async () => {
    const model = await newRack('box-1', 1);
    await model.disconnect();
    const rack = await newIpmiRack(model, (end) => void afterAll(end));
    const controller = new IpmiController(rack.box);
    expect(await controller.power(NEVER)).toBe('off');
    const known = await usersOf(controller, NEVER);
    expect(known).toEqual(['1:', '2:ADMIN']);
    await disableNewUsers(controller, known, NEVER);
    expect(await usersOf(controller, NEVER)).toEqual(known);
    // The simulator takes a user away as it would one that root on the host has added.
    await disableNewUsers(controller, ['2:ADMIN'], NEVER);
    expect(await usersOf(controller, NEVER)).toEqual(['2:ADMIN']);
    await disableNewUsers(controller, null, NEVER);
    expect(await controller.power(NEVER)).toBe('off');
  });
});
