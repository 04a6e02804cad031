/** Controllers: the users and cipher suites of IPMI, and the number of them that a look asks at once. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import type { Controller } from '../../../provisioning/servers/drivers/bmc/controller.ts';
import { IpmiController, parsedUsers } from '../../../provisioning/servers/drivers/bmc/ipmi.ts';
import { controllerOf, turnOff } from '../../../provisioning/servers/drivers/bmc/power.ts';
import { disableNewUsers, usersOf } from '../../../provisioning/servers/drivers/bmc/users.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { newDatabase } from '../../setup/database.ts';
import { VAULT } from '../../setup/vault.ts';
import { missing, newIpmiRack } from './ipmi-rack.ts';
import { NEVER, newRack } from './room.ts';

const db = await newDatabase();

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

describe('A host whose controller the driver cannot use', () => {
  it('is offline, with the reason', async () => {
    const { box, disconnect } = await newRack('box-1', 1);
    const { bmc } = box;
    const strange = { ...box, name: 'strange', bmc: { ...bmc, password: 'no' } };
    const hung = { ...box, name: 'hung' };
    const driver = new BmcDriver({
      inventory: async () => [box, strange, { ...box, name: 'old', boot: 'MEDIUM' }, hung],
      store: new Deployments(db, VAULT),
      controller: (host) =>
        host === hung
          ? ({ power: () => Promise.reject(new Error('aborted')) } as unknown as Controller)
          : controllerOf(host),
    });
    const troubles = async () => (await driver.capacity(NEVER)).map(({ state, trouble }) => trouble ?? state);
    expect(await troubles()).toEqual([
      'online',
      'The controller of strange answered 401 to GET /redfish/v1/Systems.',
      expect.stringMatching(/^The controller of old has no virtual media. Isolate its boot network/),
      'The controller of hung did not answer in time.',
    ]);
    await disconnect();
    expect((await troubles())[0]).toMatch(/^The controller of box-1 is unreachable: ECONN/);
  });
});

describe('The list of users of a controller with IPMI', () => {
  const bmc = { protocol: 'ipmi', address: '10.0.0.1', user: 'ADMIN', password: 'p' } as const;
  const parsed = (list: string) => parsedUsers(list, { name: 'box-1', bmc });
  const row = (id: number, name: string) => `${id},${name},true,false,true,ADMINISTRATOR\n`;
  const admin = { privilege: 'ADMINISTRATOR', own: false };

  it('shows all users, although root on the host has chosen odd names', () => {
    const names = ['ADMIN', 'a\nb', 'c\r', '\n4,d,true,false', ',true,true,false', '', 'e,f'];
    const list = `${names.map((name, index) => row(index + 1, name)).join('')}8,,true,false,true,NO ACCESS\n`;
    expect(parsed(list)).toEqual(
      names.map((name, index) => ({ ...admin, id: String(index + 1), name, own: name === 'ADMIN' })),
    );
    expect(parsed('')).toBeUndefined();
  });

  it.each(['ID  Name  Callin\n', row(1, 'ADMIN').trim(), `${row(1, 'ADMIN')}\n`, `x\n${row(1, 'ADMIN')}`])(
    'is refused if a part of it does not parse: %j',
    (list) => {
      expect(() => parsed(list)).toThrow('does not parse');
    },
  );
});

describe('A host that is turned off', () => {
  it('is asked once more if the time of the command ended during a question', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const answers = ['on', 'on', 'off'];
    const controller = {
      power: async () => {
        vi.setSystemTime(Date.now() + 60_000);
        return answers.shift();
      },
      off: async () => {},
    } as unknown as Controller;
    const patience = { graceSeconds: 10, powerSeconds: 10, pollSeconds: 0, silenceSeconds: 10 };
    await turnOff(controller, patience, false, NEVER);
    expect(answers).toEqual([]);
  });
});

// Developers' machines may lack OpenIPMI.
describe.skipIf(missing())('A controller with IPMI', () => {
  it('works with suite 3 if it refuses suite 17, and loses only its new users', async () => {
    const model = await newRack('box-1', 1);
    await model.disconnect();
    const rack = await newIpmiRack(model);
    const controller = new IpmiController(rack.box);
    expect(await controller.power(NEVER)).toBe('off');
    const known = await usersOf(controller, NEVER);
    expect(known).toEqual(['1::USER', '2:ADMIN:ADMINISTRATOR']);
    await disableNewUsers(controller, known, NEVER);
    expect(await usersOf(controller, NEVER)).toEqual(known);
    // The simulator takes a user away as it would one that root on the host has added.
    await disableNewUsers(controller, ['2:ADMIN:ADMINISTRATOR'], NEVER);
    expect(await usersOf(controller, NEVER)).toEqual(['2:ADMIN:ADMINISTRATOR']);
    await disableNewUsers(controller, null, NEVER);
    expect(await controller.power(NEVER)).toBe('off');
  });

  it('says which part of its access is wrong', async () => {
    const model = await newRack('box-2', 2);
    await model.disconnect();
    const { box } = await newIpmiRack(model);
    const powerWith = (bmc: object) => new IpmiController({ ...box, bmc: { ...box.bmc, ...bmc } }).power(NEVER);
    for (const [bmc, message] of [
      [{ password: 'another' }, 'The controller of box-2 refuses the password.'],
      [{ user: 'unknown' }, 'The controller of box-2 does not know the user.'],
      [{ address: 'nowhere.invalid' }, 'The name of the controller of box-2 has no address.'],
    ] as const)
      await expect(powerWith(bmc)).rejects.toMatchObject({ code: 'unreachable', message });
  });
});
