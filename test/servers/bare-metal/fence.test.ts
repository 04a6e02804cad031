/** One of two workers hangs, and continues when the host has the machine of another order. */
import { beforeEach, describe, expect, it } from 'vitest';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import { controllerOf } from '../../../provisioning/servers/drivers/bmc/power.ts';
import type { MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { newDatabase } from '../../setup/database.ts';
import { eventually } from '../../setup/freehold.ts';
import { VAULT } from '../../setup/vault.ts';
import { codeOf } from '../drivers/contract.ts';
import { NEVER, newRack, openRoom, specOf } from './room.ts';

const db = await newDatabase();
const rack = await newRack('box-1', 1);
const room = await openRoom(db, [rack]);
const machine = room.machine(rack);
const { driver } = room;
beforeEach(async () => {
  await db.query('delete from deployment');
  rack.turnOff();
});

/** A driver whose controller answers that the machine is on, and then nothing for a long time. */
function standingStill() {
  let goOn = () => {};
  const gone = new Promise<void>((resume) => {
    goOn = resume;
  });
  let stands = false;
  const stale = new BmcDriver({
    inventory: async () => [rack.box],
    store: new Deployments(db, VAULT),
    controller: (box) => {
      const real = controllerOf(box);
      return Object.assign(Object.create(real), {
        power: async (signal: AbortSignal) => {
          const seen = await real.power(signal);
          stands = true;
          await gone;
          return seen;
        },
      });
    },
    ...{ graceSeconds: 0.1, powerSeconds: 0.5, pollSeconds: 0.02 },
  });
  return { stale, stands: () => stands, goOn };
}

type Told = (stale: BmcDriver, spec: MachineSpec) => Promise<unknown>;
const TOLD: Record<string, Told> = {
  'turn it off': (stale, spec) => stale.power(spec, 'off', 'chg_1', NEVER),
  'restart it': (stale, spec) => stale.power(spec, 'restart', 'chg_2', NEVER),
  'reset it': (stale, spec) => stale.power(spec, 'reset', 'chg_3', NEVER),
  'make it anew': (stale, spec) => stale.rebuild(spec, 'chg_4', NEVER),
  'remove it': (stale, spec) => stale.destroy(spec, NEVER),
};

describe('A host that has another machine by then', () => {
  it.each(Object.entries(TOLD))('gets no command from a worker that was about to: %s', async (_, told) => {
    const [mine, other] = [specOf('SRV-FENCE00001'), specOf('SRV-FENCE00002')];
    await driver.create(mine, NEVER);
    await machine.install(driver, mine);
    const { stale, stands, goOn } = standingStill();
    const code = codeOf(told(stale, mine));
    await eventually(async () => stands());

    expect(await driver.destroy(mine, NEVER)).toMatchObject({ phase: 'incomplete' });
    await machine.wipe();
    expect(await driver.destroy(mine, NEVER)).toMatchObject({ phase: 'absent' });
    await driver.create(other, NEVER);
    await machine.install(driver, other);
    rack.journal.length = 0;

    goOn();
    expect(await code).toBe('failed');
    expect(rack.journal).toEqual([]);
    expect(await driver.observe(other, NEVER)).toMatchObject({ phase: 'present', proven: true });
    expect(await db.query('select order_number, cycle from deployment')).toEqual([
      { orderNumber: other.order, cycle: null },
    ]);
  });
});
