/** The contract of drivers for hand-made machines, with a simulated operator that works through the queue. */

import { newOrderNumber } from '../../../entities/ids.ts';
import type { MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { ManualDriver } from '../../../provisioning/servers/drivers/manual.ts';
import { ManualJobs } from '../../../provisioning/servers/manual-jobs.ts';
import { newDatabase } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { VAULT } from '../../setup/vault.ts';
import { specOf } from '../bare-metal/room.ts';
import { describeDriver } from '../drivers/contract.ts';
import { Operator } from './operator.ts';

const ends: (() => Promise<void>)[] = [];
atEnd(async () => {
  for (const end of ends.reverse()) await end();
});
const db = await newDatabase((end) => void ends.push(end));
const operator = new Operator(db, VAULT);
operator.start();
ends.push(() => operator.stop());

describeDriver({
  name: 'manual',
  newDriver: () => new ManualDriver(new ManualJobs(db, VAULT)),
  newSpec: (): MachineSpec =>
    specOf(newOrderNumber('SRV'), { sshPublicKeys: ['ssh-ed25519 AAAA one', 'ssh-ed25519 AAAA two'] }),
  larger: { vcpus: 32, memoryMb: 131_072, diskGb: 3840 },
  bootOf: async (key) => String(operator.machineOf(key)?.boots ?? ''),
  trace: {
    leave: async (key) => {
      operator.machineOf(key)!.traced = true;
    },
    left: async (key) => operator.machineOf(key)?.traced ?? false,
  },
  opens: async (spec) => {
    const machine = operator.machineOf(spec);
    return machine?.power === 'on' && machine.spec.sshPublicKeys[0] === spec.sshPublicKeys[0];
  },
  bootSeconds: 30,
});
