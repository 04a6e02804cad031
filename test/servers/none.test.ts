/** An installation without a kind of servers: nothing is simulated in its place, and no region sells it. */
import { describe, expect, it } from 'vitest';
import { NO_DRIVER } from '../../provisioning/servers/none.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { openShop } from '../setup/shop.ts';

describe('An installation without dedicated servers', async () => {
  const { anonymous, newAccount, operator } = await startFreehold({ DEDICATED_DRIVER: 'none' });

  it('sells VPS, and no dedicated server', async () => {
    const account = await newAccount();
    await account.fund(300);
    const order = (service_code: string) => account.rest('POST', '/v1/servers', { service_code, region: 'ams' });
    const { body } = await order('vps-1');
    await eventually(
      async () => (await account.rest('GET', `/v1/servers/${body.order_number}`)).body.status === 'running',
    );
    expect((await order('ded-1')).body.code).toBe('out_of_stock');
    const tier = await anonymous('GET', '/v1/catalog/ded-1');
    expect(tier.body.regions.map(({ stock }: { stock: string }) => stock)).toEqual(Array(4).fill('none'));
  });

  it('tells the operator of no missing capacity for them', async () => {
    await eventually(async () => (await operator('{ engines { name } }')).data.engines.length > 0);
    const { data } = await operator('{ openMatters(limit: 200) { kind subject } }');
    expect(data.openMatters.filter(({ subject }: { subject: string }) => subject.includes('ded-'))).toEqual([]);
  });

  it('takes no host for them', async () => {
    const { errors } = await operator(
      'mutation { addHost(input: {name: "box", region: "ams", kind: DEDICATED, serviceCode: "ded-1"}) { name } }',
    );
    expect(errors[0].message).toBe('The configuration has no driver for DEDICATED. Name an engine that you added.');
  });
});

describe('An installation without VPS of the environment', async () => {
  const { anonymous, operator } = await startFreehold({ VPS_DRIVER: 'none', DEDICATED_DRIVER: 'none' });

  it('begins with an empty catalog, and takes an engine of the operator', async () => {
    expect((await anonymous('GET', '/v1/catalog')).body.vps).toEqual([]);
    await operator('mutation { addRegion(input: {code: "osl", name: "Oslo", city: "Oslo", country: "NO"}) { code } }');
    const add = 'mutation { addEngine(input: {name: "fra", region: "osl", endpoints: ["unix:/nowhere"]}) { name } }';
    // The worker tells of the engines of the environment a moment after the start.
    await eventually(async () => (await operator(add)).data?.addEngine?.name === 'fra');
  });
});

it('The service does not start without the driver of present servers', async () => {
  const shop = await openShop(atEnd);
  await shop.server(await shop.account(0n));
  const without = shop.newProvisioning({ drivers: { VPS: NO_DRIVER, DEDICATED: NO_DRIVER } });
  await expect(without.schedule()).rejects.toThrow('The service has 1 servers of the kind VPS');
});
