/** Deployments as rows of the database. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import type { Vault } from '../../../entities/secrets.ts';
import {
  type AddressedDeployment,
  BEGIN_DEPLOYMENT,
  FIND_DEPLOYMENT,
  LIST_DEPLOYMENTS,
  moveDeployment,
  NOTE_POWER_CYCLE,
  PLAN_POWER_CYCLE,
  RELEASE_DEPLOYMENT,
  SEED,
} from '../../../entities/servers/deployment.ts';
import type { DeploymentStore, HostDeployment, PowerPlan } from '../drivers/bmc/deployment.ts';
import type { BareMetalHost } from '../drivers/bmc/host.ts';
import type { MachineKey, MachineSpec } from '../drivers/driver.ts';
import type { Seed } from './seed.ts';

const LIST_MAX = 10_000;

/** The store of the driver for dedicated servers. A seed stays sealed until its system has booted. */
export class Deployments implements DeploymentStore {
  readonly #db: Queryable;
  readonly #vault: Vault;
  constructor(db: Queryable, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
  }

  find({ order, generation }: MachineKey): Promise<AddressedDeployment | undefined> {
    return FIND_DEPLOYMENT.first(this.#db, [order, generation]);
  }

  list(): Promise<AddressedDeployment[]> {
    return LIST_DEPLOYMENTS.all(this.#db, [LIST_MAX]);
  }

  async begin(
    spec: MachineSpec,
    specDigest: string,
    { name, mac, disk }: BareMetalHost,
  ): Promise<AddressedDeployment | undefined> {
    const { order, generation, image } = spec;
    const id = newId('dep');
    const target = [name, mac.toLowerCase(), disk, image];
    const given = [id, order, generation, ...target, specDigest, this.#sealed(id, spec)];
    return (await BEGIN_DEPLOYMENT.first(this.#db, given)) ?? this.find(spec);
  }

  async renew(of: HostDeployment, spec: MachineSpec, specDigest: string, change: string): Promise<void> {
    const set = { image: spec.image, specDigest, seed: this.#sealed(of.id, spec), change };
    await moveDeployment(this.#db, of, 'WAITING', { ...set, run: of.run + 1, device: 'PXE', cycle: 'OFF' });
  }

  async wipe(of: HostDeployment): Promise<void> {
    await moveDeployment(this.#db, of, 'WIPING', { run: of.run + 1, seed: null, device: 'PXE', cycle: 'OFF' });
  }

  async plan(of: HostDeployment, { device, cycle, change }: PowerPlan): Promise<void> {
    await PLAN_POWER_CYCLE.all(this.#db, [of.id, of.run, device, cycle, change ?? null]);
  }

  async cycled(of: HostDeployment): Promise<void> {
    await NOTE_POWER_CYCLE.all(this.#db, [of.id, of.run, of.cycle, of.device]);
  }

  async release(of: HostDeployment): Promise<void> {
    await RELEASE_DEPLOYMENT.all(this.#db, [of.id, of.run]);
  }

  #sealed(id: string, { hostname, sshPublicKeys, rootPassword, userData, network }: MachineSpec): Buffer {
    const seed: Seed = { hostname, sshPublicKeys, rootPassword, userData, network };
    return SEED.seal(this.#vault, JSON.stringify(seed), id);
  }
}
