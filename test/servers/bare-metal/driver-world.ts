/**
 * Simulated bare-metal hosts: they boot as told, install the image, phone home, and have a disk.
 * With them the bmc driver can run its contract tests without root and without QEMU.
 */
import type { Database } from '../../../entities/database/database.ts';
import { newOrderNumber } from '../../../entities/ids.ts';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import type { MachineKey, MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { freePort } from '../../setup/spawn.ts';
import { VAULT } from '../../setup/vault.ts';
import type { DriverUnderTest } from '../drivers/contract.ts';
import { openRoom, type Rack, specOf } from './room.ts';

const MOMENT_MS = 20;
/** The installed system on a disk. */
interface System {
  /** The address for its single call home. */
  home: string;
  phoned: boolean;
  keys: string[];
  address: string;
  traced: boolean;
}

/** A host that works through its boot while it has power. */
class PlayedHost {
  readonly rack: Rack;
  readonly #machine: Awaited<ReturnType<typeof openRoom>>['machine'] extends (rack: Rack) => infer Machine
    ? Machine
    : never;
  system: System | undefined;
  /** The boot whose system is up, and the boot without any work left. */
  #up = 0;
  #idle = 0;

  constructor(rack: Rack, room: Awaited<ReturnType<typeof openRoom>>) {
    this.rack = rack;
    this.#machine = room.machine(rack);
  }

  get boots(): number {
    return this.rack.journal.filter((line) => line.startsWith('on')).length;
  }

  get isUp(): boolean {
    return this.rack.isOn() && this.#up === this.boots;
  }

  /** Whether the machine is on and worked through its boot. */
  get isReady(): boolean {
    return this.rack.isOn() && this.#idle === this.boots;
  }

  /** Takes the next step of the boot. */
  async go(): Promise<void> {
    const boot = this.boots;
    if (!this.rack.isOn() || this.#idle === boot) return;
    const fromNetwork = this.rack.journal.findLast((line) => line.startsWith('on')) === 'on pxe';
    const script = fromNetwork ? await this.#machine.script() : '';
    const work = script.includes('job.cpio') ? this.#machine.setting('do') : '';
    if (work === 'wipe') {
      this.system = undefined;
      await this.#machine.wipe();
    } else if (work === 'install') {
      this.system = this.#read();
      await this.#machine.tell('installed');
    } else if (this.system) {
      this.#up = boot;
      if (!this.system.phoned) this.system.phoned = (await this.#machine.boot(this.system.home)) === 204;
      if (!this.system.phoned) return;
    }
    this.#idle = boot;
  }

  #read(): System {
    const home = this.#machine.bootedAt();
    const keys = [...this.#machine.file('meta-data').matchAll(/^ +- "(.*)"$/gm)].map(([, key]) => key!);
    const [, address = ''] = /addresses: \["([^/]+)/.exec(this.#machine.file('network-config')) ?? [];
    return { home, phoned: false, keys, address, traced: false };
  }
}

/** Prepares the bmc driver over these hosts for the contract tests. */
export async function bmcWorld(name: string, db: Database, racks: Rack[]): Promise<DriverUnderTest> {
  const room = await openRoom(db, racks);
  const boxes = racks.map((rack) => new PlayedHost(rack, room));
  const store = new Deployments(db, VAULT);
  let over = false;
  const played = boxes.map(async (box) => {
    while (!over) {
      await box.go().catch(() => {});
      await new Promise((resume) => setTimeout(resume, MOMENT_MS));
    }
  });
  atEnd(async () => {
    over = true;
    await Promise.all(played);
  });

  const newDriver = (at: (rack: Rack) => Rack['box'] = ({ box }) => box) =>
    new BmcDriver({
      inventory: async () => racks.map(at),
      store,
      ...{ graceSeconds: 0.2, powerSeconds: 5, pollSeconds: 0.02 },
    });
  const closed = await freePort();
  const nowhere = ({ box }: Rack) => {
    return { ...box, bmc: { ...box.bmc, address: `http://127.0.0.1:${closed}` } };
  };

  // The addresses that the orders of this test hold.
  const free: MachineSpec[] = [];
  for (let i = 1; i <= 30; i++) {
    const [order, address, gateway] = [newOrderNumber('SRV'), `10.9.0.${i}`, '10.9.0.254'];
    await db.query(
      `insert into address (address, family, kind, region_code, held_by, prefix_length, gateway) values ($1, 'IPV4', 'SIMULATED', 'ams', $2, 24, $3)`,
      [address, order, gateway],
    );
    const ipv4 = { address, prefixLength: 24, gateway };
    const sshPublicKeys = ['ssh-ed25519 AAAA one', 'ssh-ed25519 AAAA two'];
    const network = { mac: '02:00:00:00:00:01', ipv4, ipv6: null, ipv6Prefix: null };
    free.push(specOf(order, { sshPublicKeys, network }));
  }
  const boxOf = async (key: MachineKey) => {
    const found = await store.find(key);
    return boxes.find(({ rack }) => rack.box.name === found?.box);
  };
  return {
    name,
    newDriver: () => newDriver(),
    newSpec: () => free.pop()!,
    // Over IPMI each call would time out only after 20 seconds.
    ...(racks.every(({ box }) => box.bmc.protocol === 'redfish') && { unreachable: newDriver(nowhere) }),
    bootOf: async (key) => String((await boxOf(key))?.boots ?? ''),
    trace: {
      leave: async (spec) => {
        (await boxOf(spec))!.system!.traced = true;
      },
      left: async (spec) => (await boxOf(spec))?.system?.traced ?? false,
    },
    opens: async (spec) => {
      const box = await boxOf(spec);
      // A proof covers later boots too, so a login after a restart may have to wait for the boot.
      await eventually(async () => box?.isReady, 10);
      return box?.isUp === true && box.system?.keys[0] === spec.sshPublicKeys[0];
    },
    bootSeconds: 30,
  };
}
