/** Hosts from one customer to the next: on sale at once, and never sold again unwiped. */
import { describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { codeOf, fieldOf, openHostWorld } from './host-world.ts';
import { machineOf, newRack, type Rack } from './room.ts';

const { account, act, add, audited, db, operator, override, port, update } = await openHostWorld();

describe('A bare-metal host', () => {
  const racks: Rack[] = [];
  atEnd(async () => {
    for (const rack of racks) await rack.disconnect();
  });
  /** Adds a host with a controller to the running service. */
  async function newHost(name: string): Promise<Rack> {
    const rack = await newRack(name, racks.length + 1);
    racks.push(rack);
    const { bmc, mac } = rack.box;
    const { errors } = await add({ name, region: 'ams', mac, bmc: { ...bmc, protocol: 'REDFISH' } });
    expect(errors).toBeUndefined();
    return rack;
  }
  const order = async () =>
    (await account.rest('POST', '/v1/servers', { service_code: 'ded-1', os: 'debian-13', region: 'ams' })).body;
  const statusOf = async (number: string) =>
    (await db.query<{ status: string }>('select status from server where order_number = $1', [number]))[0]!.status;
  const becomes = (number: string, status: string) => eventually(async () => (await statusOf(number)) === status, 60);
  /** Reads over GraphQL, because callers of REST share an answer for a second. */
  const stock = async (): Promise<string> => {
    const { data } = await operator('{ catalogItem(code: "ded-1") { ... on PricedTier { regions { code stock } } } }');
    return data.catalogItem.regions.find(({ code }: { code: string }) => code === 'ams').stock.toLowerCase();
  };
  const deployments = async () => (await operator('{ deployments { box orderNumber state note } }')).data.deployments;
  const machine = ({ box }: Rack) => machineOf(`http://127.0.0.1:${port}`, box.mac);
  const isIn = (number: string, state: string) =>
    eventually(async () =>
      (await deployments()).some(
        (one: { orderNumber: string; state: string }) => one.orderNumber === number && one.state === state,
      ),
    );
  /** Orders a server, and plays its machine until its system runs. */
  async function sell(rack: Rack): Promise<string> {
    const { length } = rack.journal;
    const { order_number: number } = await order();
    await eventually(async () => rack.journal.includes('on pxe', length));
    const { script, bootedAt, boot, tell } = machine(rack);
    await script();
    const system = bootedAt();
    await tell('installed');
    await eventually(async () => rack.journal.at(-1) === 'on disk');
    await boot(system);
    await becomes(number, 'RUNNING');
    return number;
  }
  /** Deletes a server. Its host begins to wipe, and does not finish. */
  async function hang(rack: Rack): Promise<string> {
    const number = await sell(rack);
    expect(codeOf(await override('declareWiped', rack.box.name, 'too early'))).toBe('validation_failed');
    expect(codeOf(await override('retireBox', rack.box.name, 'too early'))).toBe('validation_failed');
    await account.rest('DELETE', `/v1/servers/${number}`);
    await isIn(number, 'WIPING');
    await eventually(async () => rack.journal.at(-1) === 'on pxe');
    return number;
  }

  it('is on sale as soon as the operator has added it, and not before', async () => {
    expect(await stock()).toBe('none');
    expect((await order()).code).toBe('out_of_stock');
    const rack = await newHost('first');
    expect(await stock()).toBe('low');
    const number = await sell(rack);
    expect(await stock()).toBe('none');
    expect((await order()).code).toBe('out_of_stock');
    expect((await update('first', { mac: '52:54:00:00:01:0f' })).errors).toBeUndefined();
    rack.box.mac = '52:54:00:00:01:0f'; // another card
    await account.rest('DELETE', `/v1/servers/${number}`);
    await isIn(number, 'WIPING');
    expect(codeOf(await act('removeHost', 'first'))).toBe('validation_failed');
    await eventually(async () => rack.journal.at(-1) === 'on pxe');
    await machine(rack).wipe();
    await becomes(number, 'DELETED');
    expect(await stock()).toBe('low');
    expect((await act('removeHost', 'first')).errors).toBeUndefined();
  });

  it('is free when the operator declares it wiped with a reason, if its wipe hangs', async () => {
    const rack = await newHost('second');
    const number = await hang(rack);
    expect(await stock()).toBe('none');
    const QUERY = 'mutation { declareWiped(name: "second", reason: "x") { state } }';
    expect(codeOf(await account.graphql(QUERY))).toBe('insufficient_scope');
    expect((await operator('mutation { declareWiped(name: "second") { state } }')).errors).toHaveLength(1);
    expect(codeOf(await override('declareWiped', 'nowhere', 'x'))).toBe('not_found');
    const { data } = await override('declareWiped', 'second', 'disk replaced, ticket 7');
    expect(data.declareWiped).toEqual({ state: 'WIPED', note: 'disk replaced, ticket 7' });
    await becomes(number, 'DELETED');
    expect(rack.isOn()).toBe(false);
    expect(await deployments()).toEqual([]);
    expect(await stock()).toBe('none'); // it is drained
    expect(await audited('host.wiped', 'second')).toEqual([
      { order_number: number, generation: 1, state: 'WIPING', reason: 'disk replaced, ticket 7' },
    ]);
    await act('activateHost', 'second');
    expect(await stock()).toBe('low');
    expect((await act('removeHost', 'second')).errors).toBeUndefined();
  });

  it('ends its server when it is retired, and is not sold under another name until it is declared wiped', async () => {
    const rack = await newHost('third');
    const number = await hang(rack);
    await rack.disconnect();
    const { archive, tell, script } = machine(rack);
    await script();
    expect(archive()).not.toBe('');
    expect((await override('retireBox', 'third', 'dead')).data.retireBox).toEqual({ state: 'RETIRED', note: 'dead' });
    expect((await override('retireBox', 'third', 'dead')).data.retireBox.state).toBe('RETIRED');
    await becomes(number, 'DELETED');
    expect(await tell('wiped')).toBe(404);
    expect(await script()).toBe('#!ipxe\nexit\n');
    expect(await db.query('select from address where held_by = $1', [number])).toEqual([]);
    expect(await audited('host.retired', 'third')).toMatchObject([{ state: 'WIPING', reason: 'dead' }]);

    await rack.connect();
    await act('activateHost', 'third');
    expect(await stock()).toBe('none');
    expect((await order()).code).toBe('out_of_stock');
    expect((await act('removeHost', 'third')).errors).toBeUndefined();
    const { bmc, mac } = rack.box;
    const again = { region: 'ams', mac, bmc: { ...bmc, protocol: 'REDFISH' } };
    expect(fieldOf(await add({ ...again, name: 'new' }))).toBe('mac');
    expect((await add({ ...again, name: 'third' })).errors).toBeUndefined();
    expect(await stock()).toBe('none');
    expect(await deployments()).toEqual([{ box: 'third', orderNumber: number, state: 'RETIRED', note: 'dead' }]);

    expect((await override('declareWiped', 'third', 'new disk')).data.declareWiped.state).toBe('WIPED');
    expect(await deployments()).toEqual([]);
    expect(codeOf(await override('declareWiped', 'third', 'new disk'))).toBe('not_found');
    await act('activateHost', 'third');
    expect(await stock()).toBe('low');
    const next = await sell(rack);
    expect(rack.journal.at(-1)).toBe('on disk');
    // The operator cancels the deletion, which does not free the host.
    await rack.disconnect();
    await account.rest('DELETE', `/v1/servers/${next}`);
    await operator(`mutation { giveUpTask(subject: "${next}") { subject } }`);
    await becomes(next, 'DELETED');
    expect(await stock()).toBe('none');
    expect((await override('retireBox', 'third', 'gone')).data.retireBox.state).toBe('RETIRED');
    expect((await override('declareWiped', 'third', 'shredded')).data.declareWiped.state).toBe('WIPED');
  });

  it('stays reserved after its machine was given up, until the operator decides about it', async () => {
    const rack = await newHost('fourth');
    const number = await sell(rack);
    await db.query('update server set generation = 2 where order_number = $1', [number]);
    expect(await stock()).toBe('none');
    expect(codeOf(await act('removeHost', 'fourth'))).toBe('validation_failed');
    expect((await override('declareWiped', 'fourth', 'wiped by hand')).data.declareWiped.state).toBe('WIPED');
    expect(await deployments()).toEqual([]);
    expect(await statusOf(number)).toBe('RUNNING');
    await account.rest('DELETE', `/v1/servers/${number}`);
    await becomes(number, 'DELETED');
    await act('activateHost', 'fourth');
    await eventually(async () => (await stock()) === 'low');
    expect((await act('removeHost', 'fourth')).errors).toBeUndefined();
  });
});
