/** An operator turns a server off whose customer keeps it busy with changes. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { RENEWAL_PROCESS } from '../../provisioning/servers/billing/renew.ts';
import { takeMeasure } from '../../resolvers/accounts/cases.ts';
import { type ServerUpdate, updateServer } from '../../resolvers/servers/update.ts';
import { finish, openCase, openFaultyServer } from '../setup/customer-shop.ts';

/** Opens a case against a server that runs. */
async function openWithServer() {
  const { shop, order, machine } = await openFaultyServer(onTestFinished);
  const id = await openCase(shop, order);
  const change = (update: ServerUpdate) => updateServer(shop.context, order, update);
  const powerOff = () => takeMeasure(shop.context, id, 'POWER_OFF', 'It scans.');
  const power = async () => (await machine()).power;
  const measures = async () => (await shop.events(id)).filter((type) => type === 'case.measure_taken').length;
  return { shop, order, change, powerOff, power, measures };
}

describe('The measure POWER_OFF of an open case', () => {
  it.each([
    ['reboots', { action: 'REBOOT' }],
    ['is reset', { action: 'RESET' }],
    ['is rebuilt', { action: 'REBUILD' }],
    ['starts', { powerState: 'ON' }],
  ] as const)('turns a server off that %s, and holds its customer back until then', async (_, update) => {
    const { shop, order, change, powerOff, power, measures } = await openWithServer();
    if ('powerState' in update) {
      await change({ powerState: 'OFF' });
      await finish(shop, order, 'STOPPED');
    }
    await change(update);
    for (const _ of [1, 2]) await powerOff();
    expect(await measures()).toBe(1);
    await expect(change({ action: 'REBOOT' })).rejects.toMatchObject({ code: 'server_busy' });
    await finish(shop, order, 'STOPPED');
    expect([await power(), (await shop.read(order)).failureCode]).toEqual(['off', null]);
    await change({ powerState: 'ON' });
    await finish(shop, order, 'RUNNING');
    expect(await power()).toBe('on');
  });

  it('turns a server off during a reboot that a worker carries out at that moment', async () => {
    const { shop, order, change, powerOff, power } = await openWithServer();
    await change({ action: 'REBOOT' });
    const restart = shop.driver.power.bind(shop.driver);
    let asked = false;
    shop.driver.power = async (...given) => {
      const seen = await restart(...given);
      if (!asked) await powerOff();
      asked = true;
      return seen;
    };
    await finish(shop, order, 'STOPPED');
    expect([asked, await power()]).toEqual([true, 'off']);
  });

  it('turns a server off whose change fails', async () => {
    const { shop, order, change, powerOff, power } = await openWithServer();
    shop.faulty.fault = (call) => (call === 'rebuild' ? { kind: 'fail', code: 'rejected' } : undefined);
    await change({ action: 'REBUILD' });
    await powerOff();
    await finish(shop, order, 'STOPPED');
    expect([await power(), (await shop.read(order)).failureCode]).toEqual(['off', 'rebuild_failed']);
  });

  it('keeps a server off whose month is paid at that moment', async () => {
    const { shop, order, powerOff, power } = await openWithServer();
    await shop.db.query(`update server set paid_until = now(), auto_renew = false where order_number = $1`, [order]);
    await shop.tick(RENEWAL_PROCESS);
    await finish(shop, order, 'SUSPENDED');
    await shop.db.query(`update server set auto_renew = true where order_number = $1`, [order]);
    await shop.tick(RENEWAL_PROCESS);
    await shop.db.query(`delete from task where subject = 'resume:' || $1`, [shop.accountId]);
    expect((await shop.read(order)).change?.operation).toBe('resume');
    await powerOff();
    await finish(shop, order, 'STOPPED');
    expect(await power()).toBe('off');
  });
});
